import type { Completion } from "../../adapters/model/completion.ts";
import type { Answered, ChatMessage, ToolCall } from "../../adapters/model/types.ts";
import type { EventId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import { render } from "../../base/lmml/render.ts";
import { fitInto } from "../../base/prompt/list-part.ts";
import { ShareMeter } from "../../domain/budget/shares.ts";
import type { Render } from "../../domain/tables/renders.ts";

/** The most that the result of one call takes of `approxContextCharsMax`. */
const resultShare = 0.2;

/** Messages of a step, and what of them is kept as its render. */
export interface StepPrompt {
  readonly messages: readonly ChatMessage[];
  readonly kept: Pick<Render, "system" | "prompt" | "eventIds">;
  /** New events that found no room in it. */
  readonly waiting?: readonly EventId[];
}

/**
 * The messages of one turn: a base prompt plus the steps appended to it. Nothing already sent changes, so that
 * providers can cache it.
 */
export class Exchange {
  readonly #charsMax: number;
  #base: { readonly n: number; readonly messages: readonly ChatMessage[] } | undefined;
  #appended: readonly ChatMessage[] = [];
  /** Messages that are in the render of an earlier step. */
  #kept = 0;
  readonly #callIds = new Set<string>();
  readonly shares = new ShareMeter();

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** The step whose render is in use. */
  get base(): number | undefined {
    return this.#base?.n;
  }

  /** Step `n` is sent a render of its own; what was appended before is in it. */
  begin(n: number, messages: readonly ChatMessage[], eventIds: readonly EventId[]): StepPrompt {
    this.#base = { n, messages };
    this.#appended = [];
    this.#kept = 0;
    const textOf = (role: ChatMessage["role"]) => messages.find((message) => message.role === role)?.content ?? "";
    return { messages, kept: { system: textOf("system"), prompt: textOf("user"), eventIds } };
  }

  /** A step is sent what was appended, and behind it `told`. Undefined where that does not fit, or nothing was begun. */
  goOn(told?: ChatMessage, eventIds: readonly EventId[] = []): StepPrompt | undefined {
    if (!this.#base) return undefined;
    const appended = told ? [...this.#appended, told] : this.#appended;
    const messages = [...this.#base.messages, ...appended];
    if (charsOf(messages) > this.#charsMax) return undefined;
    const prompt = appended.slice(this.#kept).map(asText).join("\n\n");
    this.#appended = appended;
    this.#kept = appended.length;
    return { messages, kept: { system: `(as in step ${this.#base.n})`, prompt, eventIds } };
  }

  /**
   * The calls with ids that differ from each other and from those of earlier steps: some servers count from 0 in each
   * answer, or give all calls one id. A call that stands there again, with its id and arguments, is left out.
   */
  unique(calls: readonly ToolCall[], n: number): ToolCall[] {
    const different = new Map(calls.map((call) => [JSON.stringify([call.id, call.name, call.arguments]), call]));
    return [...different.values()].map((call) => {
      let id = call.id;
      for (let copy = 1; this.#callIds.has(id); copy++) id = `${call.id}_${n}${copy === 1 ? "" : `_${copy}`}`;
      this.#callIds.add(id);
      return { ...call, id };
    });
  }

  addAnswer(
    { text, thought, reasoningDetails, model }: Completion & Pick<Answered, "model">,
    toolCalls: readonly ToolCall[],
  ): void {
    this.#append({
      role: "assistant",
      content: text === "" && toolCalls.length === 0 ? thought || "…" : text,
      toolCalls,
      ...(reasoningDetails.length > 0 && { reasoningDetails, model }),
    });
  }

  /** Adds something that came meanwhile and is no event of the room. */
  addNote(note: Element): void {
    this.#append({
      role: "user",
      content: render(fitInto(note, Math.floor(this.#charsMax * resultShare), 0)),
      images: [],
    });
  }

  /** `result` is the `functionResult`. */
  addResult(toolCallId: string, result: Element): void {
    const most = Math.floor(this.#charsMax * resultShare);
    this.#append({ role: "tool", toolCallId, content: render(fitInto(result, most, 0)) });
  }

  /** After a takeover the steps of before are shown by the next render. */
  #append(message: ChatMessage): void {
    if (this.#base) this.#appended = [...this.#appended, message];
  }
}

const charsOf = (messages: readonly ChatMessage[]): number =>
  messages.reduce((chars, message) => {
    const own = message.role === "assistant" ? [message.toolCalls, message.reasoningDetails ?? []] : [];
    return chars + message.content.length + own.reduce((sum, part) => sum + JSON.stringify(part).length, 0);
  }, 0);

/** Texts of a message, without its images: who says it, and each of its parts. */
export const promptTexts = (message: ChatMessage): string[] => {
  const calls = message.role === "assistant" ? message.toolCalls : [];
  return [`[${message.role}]`, message.content, ...calls.map((call) => `${call.name} ${call.arguments}`)];
};

/** A message as people read it. */
const asText = (message: ChatMessage): string =>
  promptTexts(message)
    .filter((text) => text !== "")
    .join("\n");
