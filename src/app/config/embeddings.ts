import { join, resolve } from "node:path";
import { z } from "zod";
import { miniLm } from "../../adapters/embedding/model-files.ts";
import { section } from "../../base/lib/problems.ts";
import type { EmbeddingSettings } from "../../domain/memory/embeddings.ts";
import { apiKey, filled, isWebUrl, webUrl } from "./values.ts";

const kinds = ["local", "endpoint", "off"] as const;
const nowhere = "nowhere";
const source = `a URL, or ${nowhere}`;
const endpointName = "the name of an embedding model, such as text-embedding-3-small";

/** Section `embeddings` of config.yaml. */
export const embeddingsSection = section({
  kind: z
    .enum(kinds, `one of ${kinds.join(", ")}`)
    .default("local")
    .describe(
      "`local`: a small model for English in this process, all-MiniLM-L6-v2. `endpoint`: a service that speaks the OpenAI protocol, which is sent all that agents remember. `off`: memory is searched by words alone, as it is while there is no model.",
    ),
  dir: filled("a folder")
    .optional()
    .describe(
      "Of `local`: folder of the model, with `tokenizer.json` and `onnx/model.onnx`. Without it: `models/all-MiniLM-L6-v2` in the folder of the embedded database, or else beside this file.",
    ),
  downloadFrom: z
    .string(source)
    .refine((url) => url === nowhere || isWebUrl(url), source)
    .transform((url) => url.replace(/\/+$/, ""))
    .default(miniLm.url)
    .describe(
      `Of \`local\`: address below which files that are missing are fetched, once (91 MB, checked by SHA-256). \`${nowhere}\`: they are not fetched.`,
    ),
  baseUrl: webUrl("https://api.openai.com/v1").optional().describe("Of `endpoint`: address of the service."),
  apiKey: apiKey().optional().describe("Of `endpoint`: key for the service, if it asks for one."),
  name: filled(endpointName).optional().describe("Of `endpoint`: name of the model."),
}).superRefine(({ kind, baseUrl, name }, context) => {
  if (kind !== "endpoint") return;
  const needed = { baseUrl: [baseUrl, "a URL such as https://api.openai.com/v1"], name: [name, endpointName] } as const;
  for (const [key, [value, message]] of Object.entries(needed))
    if (value === undefined) context.addIssue({ code: "custom", path: [key], message });
});

/**
 * Settings as the section means them.
 * @param home folder of the configuration file
 * @param data folder of the embedded database, if it is used
 */
export function embeddingSettings(
  { kind, dir, downloadFrom, baseUrl = "", apiKey: key, name = "" }: z.output<typeof embeddingsSection>,
  home: string,
  data: string | undefined,
): EmbeddingSettings {
  if (kind === "off") return { kind };
  if (kind === "endpoint") return { kind, baseUrl, apiKey: key, name };
  return {
    kind,
    dir: dir === undefined ? join(data ?? home, "models", miniLm.model) : resolve(home, dir),
    downloadFrom: downloadFrom === nowhere ? undefined : downloadFrom,
  };
}
