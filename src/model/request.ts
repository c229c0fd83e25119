import type OpenAI from "openai";
import { type ShownImage, withImages } from "./images.ts";

/** One message to the model. More roles join this union when turns are continued natively. */
interface ChatMessage {
  readonly role: "system" | "user";
  readonly content: string;
  readonly images?: readonly ShownImage[];
}

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface ChatRequest {
  /** The provider's name of the model. */
  readonly model: string;
  /** The provider's default when undefined. */
  readonly temperature: number | undefined;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly parallelToolCalls: boolean;
  /** The same for all calls of a conversation: providers keep their prompt cache by it. */
  readonly sessionId: string;
}

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

const messageOf = ({ role, content, images = [] }: ChatMessage, blind: boolean) =>
  role === "user" ? { role, content: withImages(content, images, blind) } : { role, content };

/**
 * The body of the request. Optional fields are left out where they say nothing: some servers refuse them.
 * @param blind the model sees no images: it is told of them instead
 */
export const requestBody = (request: ChatRequest, host: string, { blind = false } = {}): RequestBody => ({
  model: request.model,
  messages: request.messages.map((message) => messageOf(message, blind)),
  stream: true,
  stream_options: { include_usage: true },
  ...(request.temperature !== undefined && { temperature: request.temperature }),
  ...(request.tools.length > 0 && {
    tools: request.tools.map(({ name, description, parameters }) => ({
      type: "function" as const,
      function: { name, description, parameters: { ...parameters } },
    })),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }),
  ...fieldsOf(host, request.sessionId),
});
