import { EmbeddingError } from "../../adapters/embedding/embedder.ts";
import { Endpoint } from "../../adapters/embedding/endpoint.ts";
import { identifyModel, miniLm, missingFiles } from "../../adapters/embedding/model-files.ts";
import { EmbeddingThread } from "../../adapters/embedding/thread.ts";
import type { EmbeddingSettings } from "../../domain/memory/embeddings.ts";
import { type CheckSetting, type Finding, ok, warning } from "./check-finding.ts";

const id = "embeddings";
const meanwhile = "Until then memory is searched by words alone.";

/** Checks that memory can be searched by meaning. It works without, so nothing here is a failure. */
export async function* checkEmbeddings({ clock, config, running }: CheckSetting): AsyncGenerator<Finding> {
  const { embeddings } = config;
  try {
    if (embeddings.kind === "off") yield ok(id, "they are off: memory is searched by words alone.");
    else if (embeddings.kind === "endpoint") {
      const { model } = await new Endpoint({ ...embeddings, clock, attempts: 1 }).open();
      yield ok(id, `${model} answers.`);
    } else yield* checkLocal(embeddings, running !== undefined);
  } catch (error) {
    if (!(error instanceof EmbeddingError)) throw error;
    const remedy = embeddings.kind === "local" ? "Take the file away: the next start fetches it" : "Correct embeddings";
    yield warning(id, `${error.message}.`, `${remedy}, or set embeddings: { kind: off } in config.yaml. ${meanwhile}`);
  }
}

async function* checkLocal(
  { dir, downloadFrom }: Extract<EmbeddingSettings, { kind: "local" }>,
  isRunning: boolean,
): AsyncGenerator<Finding> {
  const missing = await missingFiles(dir, miniLm);
  if (missing.length > 0) {
    const names = missing.map(({ path }) => path).join(" and ");
    const bytes = missing.reduce((sum, file) => sum + file.bytes, 0);
    if (downloadFrom !== undefined && !isRunning)
      yield ok(
        id,
        `the next start fetches ${miniLm.model} into ${dir} (${Math.ceil(bytes / 1e6)} MB from ${downloadFrom}). ${meanwhile}`,
      );
    else
      yield warning(
        id,
        `${names} of the embedding model is not in ${dir}: memory is searched by words alone.`,
        `Put the files of ${miniLm.url} there${isRunning && downloadFrom !== undefined ? "; the log says why they are not fetched" : ""}.`,
      );
    return;
  }
  const { model } = await identifyModel(dir, miniLm);
  // The running bridge has the model in memory already.
  if (!isRunning) await tryOut(dir);
  if (model === miniLm.model) yield ok(id, `${model} in ${dir} can be used.`);
  else
    yield warning(
      id,
      `the files in ${dir} are not those of ${miniLm.model} as they were published. They are used as a model of its own, ${model}.`,
      "If you have put another model there, all is well. Otherwise take the files away: the next start fetches them.",
    );
}

async function tryOut(dir: string): Promise<void> {
  const thread = new EmbeddingThread(dir);
  try {
    await thread.embed(["Hello."]);
  } finally {
    await thread.stop();
  }
}
