import type { Failure } from "./failure.ts";
import type { ChatRequest, ModelOptions } from "./types.ts";

/** An option that can be refused. */
export type OptionName = keyof ModelOptions;

/** Words by which providers name an option when they refuse it. */
const named: Readonly<Record<OptionName, RegExp>> = {
  temperature: /temperature/i,
  reasoning: /reasoning|thinking|\beffort\b/i,
  maxTokens: /max_(?:completion_|output_)?tokens|maxOutputTokens|max(?:imum)? (?:completion |output )?tokens/i,
};

const namesOf = (request: ModelOptions): OptionName[] =>
  (Object.keys(named) as OptionName[]).filter((name) => request[name] !== undefined);

/** The option of a request because of which it was refused; undefined where it was something else. */
export const findRefusedOption = (request: ModelOptions, { status, words }: Failure): OptionName | undefined =>
  status === 400 || status === 422 ? namesOf(request).find((name) => named[name].test(words)) : undefined;

/** Options that models have refused. They are sent none of them again with this value, until the next start. */
export class RefusedOptions {
  readonly #refused = new Set<string>();

  add(request: ChatRequest, option: OptionName): void {
    this.#refused.add(keyOf(request, option));
  }

  /** The request without what its model has refused. */
  without(request: ChatRequest): ChatRequest {
    const refused = namesOf(request).filter((option) => this.#refused.has(keyOf(request, option)));
    return refused.length === 0
      ? request
      : { ...request, ...Object.fromEntries(refused.map((name) => [name, undefined])) };
  }
}

const keyOf = (request: ChatRequest, option: OptionName): string =>
  JSON.stringify([request.model, option, request[option]]);
