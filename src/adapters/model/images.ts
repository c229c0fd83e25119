import type OpenAI from "openai";
import type { Failure } from "./failure.ts";

/** An image that the model is shown with a message. */
export interface ShownImage {
  /** Stands before the image, so that the text can speak of it. */
  readonly label: string;
  readonly contentType: string;
  readonly base64: string;
}

type Part = OpenAI.ChatCompletionContentPartText | OpenAI.ChatCompletionContentPartImage;

const text = (words: string): Part => ({ type: "text", text: words });

/** The content of a message with images. A model that is blind is told what it does not see. */
export const withImages = (content: string, images: readonly ShownImage[], isBlind: boolean): string | Part[] => {
  if (images.length === 0) return content;
  if (isBlind) return [content, ...images.map(({ label }) => `${label} (an image, which you cannot see)`)].join("\n\n");
  return [
    text(content),
    ...images.flatMap(({ label, contentType, base64 }): Part[] => [
      text(label),
      { type: "image_url", image_url: { url: `data:${contentType};base64,${base64}` } },
    ]),
  ];
};

/** About what an image costs, in characters of text. */
const imageChars = "·".repeat(6_000);

/** Turns what was sent into a text from whose length its tokens are estimated. */
export const promptText = (sent: unknown): string =>
  JSON.stringify(sent, (_, value: unknown) =>
    typeof value === "string" && value.startsWith("data:image/") ? imageChars : value,
  );

/**
 * Reads from a failure whether the request was refused because of its images; providers say it in words alone: `never`
 * where the model sees no images at all, `these` where it did not like those that it was sent.
 */
export const refusalOfImages = ({ status, words }: Failure): "never" | "these" | undefined => {
  if (status === 413) return "these";
  if (status === undefined || status === 429 || !/image|vision|multi-?modal/i.test(words)) return undefined;
  return /format|invalid|large|big|many|process|decode|corrupt|download/i.test(words) ? "these" : "never";
};
