import { z } from "zod";
import type { ChatRequest, Usage } from "./types.ts";

/** The usage record of an OpenAI-compatible stream; `cost` is OpenRouter's, in US dollars. */
export const usageRecord = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  prompt_tokens_details: z.object({ cached_tokens: z.number().nullish() }).nullish(),
  cost: z.number().nullish(),
});

/** A rule of thumb for text of any language and any tokenizer: four characters are a token. */
const estimateTokens = (text: string): number => Math.ceil(text.length / 4);

/** An image, whatever its size: providers scale it down to about this many tokens. */
export const imageTokens = 1_500;

/** Tokens of what a request sends. */
export const estimatePrompt = ({ messages, tools }: ChatRequest): number => {
  const images = messages.reduce(
    (count, message) => count + ("images" in message ? (message.images?.length ?? 0) : 0),
    0,
  );
  const text = messages.map((message) => ({ ...message, images: undefined }));
  return estimateTokens(JSON.stringify([text, tools])) + images * imageTokens;
};

export const readUsage = (record: z.infer<typeof usageRecord>): Usage => ({
  promptTokens: record.prompt_tokens,
  cachedTokens: record.prompt_tokens_details?.cached_tokens ?? 0,
  completionTokens: record.completion_tokens,
  costUsd: record.cost ?? undefined,
  isEstimated: false,
});

export const estimateUsage = (prompt: string, completion: string): Usage => ({
  promptTokens: estimateTokens(prompt),
  cachedTokens: 0,
  completionTokens: estimateTokens(completion),
  costUsd: undefined,
  isEstimated: true,
});
