import { type Embedder, EmbeddingError } from "../../adapters/embedding/embedder.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { InteractionVectors } from "../tables/interaction-vectors.ts";
import type { KnowledgeVectors } from "../tables/knowledge-vectors.ts";
import type { EmbeddedText, TextVectors, Unembedded } from "../tables/text-vectors.ts";
import { chunksOf } from "./chunks.ts";
import type { Embeddings } from "./embeddings.ts";

/** Key of the lease under which one process at a time embeds. */
const lease = "embedding";
/** Interactions, or entries of knowledge, that are embedded and stored together. */
const textsAtOnce = 16;
/** Memories of this time are collected, and embedded together. */
const collectMs = 500;
/** For what another process stored, and for a lease that has come to us. */
const passEveryMs = 30_000;
/** Pause behind a failure. */
const pauseMs = 15_000;
const logEveryMs = 60_000;

interface EmbeddingKeeperParts {
  readonly embeddings: Pick<Embeddings, "present">;
  readonly vectors: InteractionVectors;
  readonly knowledge: KnowledgeVectors;
  readonly leases: { holds(key: string): boolean };
  readonly clock: Clock;
  readonly log: Log;
  /** Hears how many texts have got their vectors. */
  readonly onEmbedded?: (count: number) => void;
}

/**
 * Gives what agents remember and know its vectors, in the background and the newest first; storing it waits for none of
 * this. With another model all is embedded again, and the vectors before go when all the new ones are there.
 */
export class EmbeddingKeeper {
  readonly #parts: EmbeddingKeeperParts;
  readonly #rounds: Rounds;
  /** Model that the database knows as the present one. */
  #chosen: string | undefined;
  #hasQueued = false;
  #hasRetired = false;
  /** Set if the database takes no vectors; the next start tries again. */
  #hasNoPlace = false;
  #done = 0;
  #saidAt = 0;
  #hasRested = false;

  constructor(parts: EmbeddingKeeperParts) {
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  /** Something new may be there to embed, or a model. Costs nothing. */
  nudge(): void {
    this.#rounds.nudge();
  }

  start(): void {
    this.#rounds.start(async () => {
      if (this.#hasRested) await this.#sleep(collectMs);
      if (this.#rounds.signal.aborted) return 0;
      const rest = await this.#step().catch(async (error: unknown) => {
        if (this.#rounds.signal.aborted) return 0;
        this.#parts.log.warn(`memories are embedded later: ${messageOf(error)}`);
        await this.#sleep(pauseMs);
        return 0;
      });
      this.#hasRested = rest > 0;
      return rest;
    });
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  #sleep(ms: number): Promise<void> {
    return this.#parts.clock.sleep(ms, this.#rounds.signal).catch(() => {});
  }

  /** Does a bit of what there is to do. @returns milliseconds to rest; 0 if there is more */
  async #step(): Promise<number> {
    const { embeddings, knowledge, leases, vectors } = this.#parts;
    const embedder = embeddings.present;
    if (!embedder || !leases.holds(lease)) {
      this.#chosen = undefined;
      return passEveryMs;
    }
    if (this.#chosen !== embedder.model && !(await this.#choose(embedder))) return passEveryMs;
    let hasEmbedded = false;
    // A batch of each by turns: neither waits until all of the other is done.
    for (const texts of [vectors, knowledge]) {
      const batch = await texts.next(textsAtOnce);
      if (batch.length === 0) continue;
      await this.#embed(embedder, batch, texts);
      hasEmbedded = true;
    }
    if (hasEmbedded) return 0;
    if (!this.#hasQueued) {
      this.#hasQueued = !(await vectors.queue(embedder.model));
      if (this.#hasQueued) await knowledge.queue(embedder.model);
      return 0;
    }
    if (this.#hasRetired) return passEveryMs;
    this.#hasRetired = !(await knowledge.retire(embedder.model)) && !(await vectors.retire(embedder.model));
    return 0;
  }

  async #choose(embedder: Embedder): Promise<boolean> {
    const { knowledge, log, vectors } = this.#parts;
    if (this.#hasNoPlace) return false;
    const missing = (await vectors.prepare()) ?? (await knowledge.prepare());
    if (missing !== undefined) {
      log.warn(`memory is searched by words alone: the database takes no vectors (${missing}). Install pgvector`);
      this.#hasNoPlace = true;
      return false;
    }
    await vectors.choose(embedder);
    await vectors.index(embedder);
    this.#chosen = embedder.model;
    this.#hasQueued = this.#hasRetired = false;
    return true;
  }

  async #embed(embedder: Embedder, batch: readonly Unembedded[], texts: TextVectors): Promise<void> {
    const { clock, knowledge, log, vectors, onEmbedded } = this.#parts;
    const what = texts === knowledge ? "knowledge" : "memory";
    const embedded = await embedAll(embedder, batch, (id, why) => log.warn(`${what} ${id} has no vectors: ${why}`));
    if (this.#rounds.signal.aborted) return;
    await texts.store(embedder.model, embedded);
    onEmbedded?.(batch.length);
    this.#done += batch.length;
    if (clock.monotonic() - this.#saidAt < logEveryMs) return;
    if (this.#saidAt > 0) {
      const waiting = (await vectors.waiting()) + (await knowledge.waiting());
      log.info({ done: this.#done, waiting }, "memories are embedded");
    }
    this.#saidAt = clock.monotonic();
  }
}

/** Embeds texts together; one by one where the model refuses one of them, which then has no vectors. */
async function embedAll(
  embedder: Embedder,
  batch: readonly Unembedded[],
  onRefused: (id: number, why: string) => void,
): Promise<EmbeddedText[]> {
  const chunks = batch.map(({ text }) => chunksOf(text));
  try {
    const all = [...(await embedder.embed(chunks.flat()))];
    return batch.map((one, index) => ({ ...one, vectors: all.splice(0, chunks[index]?.length ?? 0) }));
  } catch (error) {
    if (!(error instanceof EmbeddingError) || error.kind !== "refused") throw error;
    if (batch.length > 1) return (await Promise.all(batch.map((one) => embedAll(embedder, [one], onRefused)))).flat();
    onRefused(batch[0]?.id ?? 0, error.message);
    return batch.map((one) => ({ ...one, vectors: [] }));
  }
}
