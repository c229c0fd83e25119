import { z } from "zod";
import { text } from "../../domain/agents/settings.ts";

export const isWebUrl = (url: string): boolean => /^https?:\/\//i.test(url) && URL.canParse(url);

/** Address of a server, without a slash at its end. */
export const webUrl = (example: string) => {
  const expected = `a URL such as ${example}`;
  return z
    .string(expected)
    .refine(isWebUrl, expected)
    .transform((url) => url.replace(/\/+$/, ""));
};

export const filled = (expected: string) => text(expected).min(1, expected);

/** True if a key can stand in a header. Servers repeat a key that cannot in their refusal. */
export const isApiKey = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

const keyForm = "a key of one line without spaces, apiKeyFile: PATH, or nothing where the model asks for none";
export const apiKey = () => z.string(keyForm).refine(isApiKey, keyForm);
