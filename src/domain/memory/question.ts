import { within } from "../../adapters/database/backlog.ts";
import type { Sought } from "../tables/recall-query.ts";

/** Makes vectors of texts; see the embedding models. */
interface QueryEmbedder {
  readonly model: string;
  /** Wait that a vector is worth, in milliseconds, even where somebody waits for an answer. */
  readonly patienceMs?: number;
  embed(texts: readonly string[]): Promise<readonly Float32Array[]>;
}

/** Gives the embedder, where there is one now. */
export type EmbedderSource = () => QueryEmbedder | undefined;

/** Wait for a vector where somebody has asked for the memory itself. */
const usualPatienceMs = 5_000;

/** Makes the vector of a question; undefined where there is none in time. */
export async function embedQuestion(
  source: EmbedderSource,
  text: string,
  ms: number = usualPatienceMs,
): Promise<Sought["vector"]> {
  const embedder = source();
  if (!embedder) return undefined;
  const [numbers] = (await within(Math.max(ms, embedder.patienceMs ?? 0), embedder.embed([text]))) ?? [];
  return numbers && { model: embedder.model, numbers: [...numbers] };
}
