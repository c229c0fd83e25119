import type OpenAI from "openai";
import { withImages } from "./images.ts";
import type { ChatMessage, ChatRequest, ModelOptions, ToolCall } from "./types.ts";

type RequestBody = OpenAI.ChatCompletionCreateParamsStreaming;

/**
 * Fields beyond the common protocol, by host: OpenRouter has its own for the cost and for cache stickiness, OpenAI has
 * another for the latter and refuses unknown fields; all other servers are sent neither.
 */
const fieldsOf = (host: string, sessionId: string) => {
  if (host === "openrouter.ai") return { usage: { include: true }, session_id: sessionId };
  if (host === "api.openai.com") return { prompt_cache_key: sessionId };
  return {};
};

/**
 * The options as a host takes them. OpenRouter has an object for the reasoning, in which alone a number of tokens can be
 * said; OpenAI another name for the length of the answer.
 */
const optionsOf = (host: string, { temperature, reasoning, maxTokens }: ModelOptions) => ({
  ...(temperature !== undefined && { temperature }),
  ...(typeof reasoning === "number" && { reasoning: { max_tokens: reasoning } }),
  ...(typeof reasoning === "string" &&
    (host === "openrouter.ai" ? { reasoning: { effort: reasoning } } : { reasoning_effort: reasoning })),
  ...(maxTokens !== undefined && { [host === "api.openai.com" ? "max_completion_tokens" : "max_tokens"]: maxTokens }),
});

/** True if the model's cache works only by marks: Anthropic's, through OpenRouter; four marks at most. */
const wantsMarks = (host: string, model: string): boolean => host === "openrouter.ai" && model.startsWith("anthropic/");
const marksMax = 4;

interface Wire {
  readonly model: string;
  readonly hasMarks: boolean;
  /** The model sees no images: it is told of them instead. */
  readonly isBlind: boolean;
}

/** Broken arguments were answered as such; servers refuse them in what they are sent. */
const argumentsOf = (call: ToolCall): string => {
  try {
    JSON.parse(call.arguments);
    return call.arguments;
  } catch {
    return "{}";
  }
};

const messageOf = (message: ChatMessage, wire: Wire): OpenAI.ChatCompletionMessageParam => {
  switch (message.role) {
    case "system":
      return { role: "system", content: wire.hasMarks ? splitAtBorders(message.content, []) : message.content };
    case "user": {
      const { content, images = [], borders = [] } = message;
      if (images.length > 0) return { role: "user", content: withImages(content, images, wire.isBlind) };
      return {
        role: "user",
        content: wire.hasMarks && borders.length > 0 ? splitAtBorders(content, borders) : content,
      };
    }
    case "assistant": {
      const { content, model = wire.model, toolCalls, reasoningDetails } = message;
      return {
        role: "assistant",
        content,
        ...(toolCalls.length > 0 && {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: "function" as const,
            function: { name: call.name, arguments: argumentsOf(call) },
          })),
        }),
        ...(reasoningDetails && model === wire.model && { reasoning_details: reasoningDetails }),
      };
    }
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
  }
};

/** The text in pieces that end at the borders; all but the last are marked to be cached, or the only one. */
const splitAtBorders = (content: string, borders: readonly number[]): OpenAI.ChatCompletionContentPartText[] => {
  const ends = [...borders.slice(0, marksMax - 1), content.length];
  const pieces = ends.map((end, index) => content.slice(ends[index - 1] ?? 0, end)).filter((piece) => piece !== "");
  return pieces.map((text, index) => ({
    type: "text" as const,
    text,
    ...((index < pieces.length - 1 || borders.length === 0) && { cache_control: { type: "ephemeral" } }),
  }));
};

/**
 * The body of the request. Optional fields are left out where they say nothing: some servers refuse them.
 * @param isBlind the model sees no images: it is told of them instead
 */
export const requestBody = (request: ChatRequest, host: string, { isBlind = false } = {}): RequestBody => ({
  model: request.model,
  messages: request.messages.map((message) =>
    messageOf(message, { model: request.model, isBlind, hasMarks: wantsMarks(host, request.model) }),
  ),
  stream: true,
  stream_options: { include_usage: true },
  ...optionsOf(host, request),
  ...(request.tools.length > 0 && {
    tools: request.tools.map(({ name, description, parameters }) => ({
      type: "function" as const,
      function: { name, description, parameters: { ...parameters } },
    })),
    ...(!request.mayCallInParallel && { parallel_tool_calls: false }),
  }),
  ...fieldsOf(host, request.sessionId),
});
