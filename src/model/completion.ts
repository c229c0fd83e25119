import { z } from "zod";
import { storable, storableJson } from "../lib/storable.ts";
import { joinThoughts, splitThoughts } from "./thoughts.ts";
import { estimateUsage, readUsage, type Usage, usageRecord } from "./usage.ts";

export interface ToolCall {
  /** The provider's, or made from the call's position where the provider gives none. */
  readonly id: string;
  readonly name: string;
  /** JSON as the model wrote it: it may be broken. Never empty: no arguments are `{}`. */
  readonly arguments: string;
}

/** `text`, `summary` and `data` come in pieces; what else is in it is kept as it came. */
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
  /** What the model says, without its thoughts, trimmed. */
  readonly text: string;
  /** What the model thinks: reasoning fields and `<think>` blocks. Never to be sent as a message. */
  readonly thought: string;
  readonly toolCalls: readonly ToolCall[];
  /** OpenRouter's record of the thoughts, whole: to be sent back with the calls. Empty from other servers. */
  readonly reasoningDetails: readonly ReasoningDetail[];
  /** `stop`, `tool_calls`, `length`, `content_filter`, or a word of the provider's own. */
  readonly finishReason: string;
  readonly usage: Usage;
}

/** The stream was not what the protocol promises: another attempt may bring a better one. */
export class StreamError extends Error {
  override readonly name = "StreamError";
}

const toolCallDelta = z.object({
  index: z.number().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

/**
 * What is read of a chunk: the OpenAI protocol and the reasoning fields of others (`reasoning_content`: DeepSeek,
 * llama-server, vLLM; `reasoning` and `reasoning_details`: OpenRouter, which sends the same text in both).
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

/** The end of what may become the beginning or the end of a thought. */
const halfTag = /<\/?[a-z]{0,8}$/i;

interface PartialCall {
  readonly index: number | undefined;
  readonly id: string | undefined;
  name: string;
  arguments: string;
}

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

  /** The model has said that it is done: what follows can only be the usage. */
  get finished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** Characters of the answer so far: what it says, thinks and asks for. */
  get chars(): number {
    return this.#calls.reduce(
      (chars, call) => chars + call.name.length + call.arguments.length,
      this.#content.length + this.#reasoning.length,
    );
  }

  /** Throws a StreamError for what is no chunk and for one that reports an error. */
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
  }

  /** What it says so far, without its thoughts; they cannot be told from it where a server leaves out their beginning. */
  get text(): string {
    return splitThoughts(storable(this.#content.replace(halfTag, ""))).text;
  }

  /** It asks for tools: what it says is no answer. */
  get calls(): boolean {
    return this.#calls.length > 0;
  }

  /** `prompt` gives what was sent: tokens are estimated from it where the stream did not count them. */
  build(prompt: () => string): Completion {
    if (this.#finishReason === undefined) throw new StreamError("the stream ended before the answer did");
    const { text, thought } = splitThoughts(storable(this.#content));
    const toolCalls = this.#calls.map((call, position) => ({
      id: storable(call.id ?? `call_${position}`),
      name: storable(call.name),
      arguments: call.arguments.trim() === "" ? "{}" : storable(call.arguments),
    }));
    const written = this.#content + this.#reasoning + toolCalls.map((call) => call.name + call.arguments).join("");
    return {
      text,
      thought: joinThoughts([storable(this.#reasoning), thought]),
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
   * id: some servers send whole calls, all with index 0 or with none.
   */
  #addCall(delta: z.infer<typeof toolCallDelta>): void {
    const index = delta.index ?? undefined;
    const id = delta.id || undefined;
    const name = delta.function?.name ?? "";
    const whole = index === undefined && id === undefined && name !== "";
    let call = whole
      ? undefined
      : this.#calls.findLast(
          (known) => (index === undefined || known.index === index) && (id === undefined || known.id === id),
        );
    if (call === undefined) {
      call = { index, id, name: "", arguments: "" };
      this.#calls.push(call);
    }
    call.name += name;
    call.arguments += delta.function?.arguments ?? "";
  }
}
