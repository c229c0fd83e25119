import { z } from "zod";
import { OverLimit } from "../../base/lib/outside.ts";
import { storableJson, toStorable } from "../../base/lib/storable.ts";
import { StreamError } from "./failure.ts";
import { joinThoughts, splitThoughts } from "./thoughts.ts";
import type { ToolCall, Usage } from "./types.ts";
import { estimateUsage, readUsage, usageRecord } from "./usage.ts";

/** `text`, `summary` and `data` come in pieces; other fields are kept as they came. */
const reasoningDetail = z.looseObject({
  type: z.string().nullish(),
  index: z.number().nullish(),
  text: z.string().nullish(),
  summary: z.string().nullish(),
  data: z.string().nullish(),
});
export type ReasoningDetail = z.infer<typeof reasoningDetail>;

/** A whole answer of the model. Every text in it can be stored. */
export interface Completion {
  /** Text that the model says, without its thoughts, trimmed. */
  readonly text: string;
  /** Thoughts of the model: reasoning fields and `<think>` blocks. Never to be sent as a message. */
  readonly thought: string;
  readonly toolCalls: readonly ToolCall[];
  /** OpenRouter's record of the thoughts, whole: to be sent back with the calls. Empty from other servers. */
  readonly reasoningDetails: readonly ReasoningDetail[];
  /** `stop`, `tool_calls`, `length`, `content_filter`, or a word of the provider's own. */
  readonly finishReason: string;
  readonly usage: Usage;
}

const toolCallDelta = z.object({
  index: z.number().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

/**
 * Fields that are read of a chunk: the OpenAI protocol and the reasoning fields of others (`reasoning_content`:
 * DeepSeek, llama-server, vLLM; `reasoning` and `reasoning_details`: OpenRouter, which sends one text in both).
 */
const chunkSchema = z.object({
  choices: z
    .array(
      z.object({
        delta: z
          .object({
            content: z.string().nullish(),
            refusal: z.string().nullish(),
            reasoning: z.string().nullish(),
            reasoning_content: z.string().nullish(),
            reasoning_details: z.array(reasoningDetail).nullish(),
            tool_calls: z.array(toolCallDelta).nullish(),
          })
          .nullish(),
        finish_reason: z.string().nullish(),
        error: z.object({ message: z.string() }).nullish(),
      }),
    )
    .nullish(),
  usage: usageRecord.nullish(),
});

/** Characters of an answer, its thoughts and calls included. The longest answers of models have half of them. */
const charsMost = 1_000_000;

/** End of a text that may become the beginning or the end of a thought. */
const halfTag = /<\/?[a-z]{0,8}$/i;

interface PartialCall {
  readonly index: number | undefined;
  readonly id: string | undefined;
  name: string;
  arguments: string;
}

const isWhole = (json: string): boolean => {
  if (!json.trimEnd().endsWith("}")) return false;
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
};

/** An answer that is not whole yet. */
export type Arrival = Pick<CompletionBuilder, "chars" | "text" | "calls">;

/** Puts the chunks of one stream together. */
export class CompletionBuilder {
  #content = "";
  #reasoning = "";
  readonly #calls: PartialCall[] = [];
  readonly #details: ReasoningDetail[] = [];
  #finishReason: string | undefined;
  #usage: Usage | undefined;

  /** True if the model has said that it is done: only the usage can follow. Some servers give each chunk an empty reason. */
  get isFinished(): boolean {
    return Boolean(this.#finishReason);
  }

  /** Characters of the answer so far: its text, thoughts and calls. */
  get chars(): number {
    return this.#calls.reduce(
      (chars, call) => chars + call.name.length + call.arguments.length,
      this.#content.length + this.#reasoning.length,
    );
  }

  /** Adds a chunk. Throws a StreamError if it is none, or reports an error; an OverLimit if the answer gets too long. */
  add(chunk: unknown): void {
    const parsed = chunkSchema.safeParse(chunk);
    if (!parsed.success) throw new StreamError(`a chunk that cannot be read: ${z.prettifyError(parsed.error)}`);
    const { choices, usage } = parsed.data;
    if (usage) this.#usage = readUsage(usage);
    const choice = choices?.[0];
    if (choice?.finish_reason === "error") throw new StreamError(choice.error?.message ?? "the provider had an error");
    const delta = choice?.delta;
    this.#content += delta?.content ?? delta?.refusal ?? "";
    this.#reasoning +=
      delta?.reasoning ??
      delta?.reasoning_content ??
      delta?.reasoning_details?.map((detail) => detail.text ?? detail.summary ?? "").join("") ??
      "";
    for (const detail of delta?.reasoning_details ?? []) this.#addDetail(detail);
    for (const call of delta?.tool_calls ?? []) this.#addCall(call);
    this.#finishReason = choice?.finish_reason ?? this.#finishReason;
    if (this.chars > charsMost) throw new OverLimit("size", `the answer has more than ${charsMost} characters`);
  }

  /**
   * Text so far, without thoughts; where a server leaves out the beginning of the thoughts, they cannot be told from
   * it.
   */
  get text(): string {
    return splitThoughts(toStorable(this.#content.replace(halfTag, ""))).text;
  }

  /** True if it asks for tools: its text is then no answer. */
  get calls(): boolean {
    return this.#calls.length > 0;
  }

  /** Ends the answer. `prompt` gives the sent text: its tokens are estimated if the stream did not count them. */
  build(prompt: () => string): Completion {
    if (this.#finishReason === undefined) throw new StreamError("the stream ended before the answer did");
    const { text, thought } = splitThoughts(toStorable(this.#content));
    const toolCalls = this.#calls.map((call, position) => ({
      id: toStorable(call.id ?? `call_${position}`),
      name: toStorable(call.name),
      arguments: call.arguments.trim() === "" ? "{}" : toStorable(call.arguments),
    }));
    const written = this.#content + this.#reasoning + toolCalls.map((call) => call.name + call.arguments).join("");
    return {
      text,
      thought: joinThoughts([toStorable(this.#reasoning), thought]),
      toolCalls,
      reasoningDetails: storableJson(this.#details),
      finishReason: this.#finishReason,
      usage: this.#usage ?? estimateUsage(prompt(), written),
    };
  }

  /** A detail goes on under its index and type. */
  #addDetail(detail: ReasoningDetail): void {
    const last = this.#details.at(-1);
    if (!last || last.type !== detail.type || last.index !== detail.index) {
      this.#details.push({ ...detail });
      return;
    }
    for (const [key, value] of Object.entries(detail)) {
      if (value === null || value === undefined) continue;
      const before = last[key];
      const goesOn = (key === "text" || key === "summary" || key === "data") && typeof before === "string";
      last[key] = goesOn ? `${before}${String(value)}` : value;
    }
  }

  /**
   * A call goes on under its index; a new id under the same index is a new call, and so is a name without index and
   * id, or behind arguments that are whole: some servers send whole calls, all with index 0 or with none, and all with
   * one id.
   */
  #addCall(delta: z.infer<typeof toolCallDelta>): void {
    const index = delta.index ?? undefined;
    const id = delta.id || undefined;
    const name = delta.function?.name ?? "";
    const isWholeCall = index === undefined && id === undefined && name !== "";
    let call = isWholeCall
      ? undefined
      : this.#calls.findLast(
          (known) => (index === undefined || known.index === index) && (id === undefined || known.id === id),
        );
    if (call === undefined || (name !== "" && isWhole(call.arguments))) {
      call = { index, id, name: "", arguments: "" };
      this.#calls.push(call);
    }
    call.name += name;
    call.arguments += delta.function?.arguments ?? "";
  }
}
