/** Turns texts into vectors: the closer the meaning of two texts, the closer their vectors. */
export interface Embedder {
  /** Name under which its vectors are kept: those of two names are never compared. */
  readonly model: string;
  /** Numbers in each vector. */
  readonly dimensions: number;
  /**
   * Gives one vector for each text, in their order; the length of each is 1.
   * @throws EmbeddingError where there are none now
   */
  embed(texts: readonly string[]): Promise<readonly Float32Array[]>;
}

/** `unavailable` may work later, `misconfigured` once somebody has acted, `refused` never with these texts. */
export type EmbeddingErrorKind = "unavailable" | "misconfigured" | "refused";

/** No vectors now. The message is for operators: what happened, and what to do. */
export class EmbeddingError extends Error {
  override readonly name = "EmbeddingError";
  readonly kind: EmbeddingErrorKind;

  constructor(message: string, kind: EmbeddingErrorKind) {
    super(message);
    this.kind = kind;
  }
}

/** The vector with a length of 1; undefined where it has no direction. */
export function normalise(vector: Float32Array): Float32Array | undefined {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  return Number.isFinite(length) && length > 0 ? vector.map((value) => value / length) : undefined;
}
