import type { ShownImage } from "./images.ts";

/** Tokens and money that one model call consumed. */
export interface Usage {
  readonly promptTokens: number;
  /** The part of `promptTokens` that the provider read from its cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Charge that the provider reports; most report none. */
  readonly costUsd: number | undefined;
  /** The provider counted nothing: the figures are `estimateTokens` of what went over the wire. */
  readonly isEstimated: boolean;
}

export interface ToolCall {
  /** The provider's, or made from the call's position where the provider gives none. */
  readonly id: string;
  readonly name: string;
  /** JSON as the model wrote it: it may be broken. Never empty: no arguments are `{}`. */
  readonly arguments: string;
}

/** Message to the model: who it is, and what it sees. */
interface Told {
  readonly role: "system" | "user";
  readonly content: string;
  /** Places in `content` up to which it is likely to be the same in the next request. */
  readonly borders?: readonly number[];
  readonly images?: readonly ShownImage[];
}

/** Answer of the model in an earlier step, as it came. */
export interface Answered {
  readonly role: "assistant";
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  /** OpenRouter's record of the model's thoughts, which some models need back to go on thinking. */
  readonly reasoningDetails?: readonly unknown[];
  /** Whose thoughts they are: no other model is sent them. */
  readonly model?: string | undefined;
}

/** Result of a call that the model made. */
interface Returned {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly content: string;
}

export type ChatMessage = Told | Answered | Returned;

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Efforts of thinking before the answer, from none at all. */
export const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
type ReasoningEffort = (typeof reasoningEfforts)[number];

/** Options of a model that people may set. An option that is not set is not sent: the provider's default holds. */
export interface ModelOptions {
  readonly temperature?: number | undefined;
  /** An effort, or the most tokens of thoughts. */
  readonly reasoning?: ReasoningEffort | number | undefined;
  /** The most tokens of an answer. */
  readonly maxTokens?: number | undefined;
}

export interface ChatRequest extends ModelOptions {
  /** The provider's name of the model. */
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly mayCallInParallel: boolean;
  /** Equal for all calls of a conversation: providers keep their prompt cache by it. */
  readonly sessionId: string;
}
