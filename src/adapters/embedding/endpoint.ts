import { z } from "zod";
import type { Clock } from "../../base/lib/clock.ts";
import { fetchWithin, networkReason, OverLimit } from "../../base/lib/outside.ts";
import { type Embedder, EmbeddingError, type EmbeddingErrorKind, normalise } from "./embedder.ts";

interface EndpointOptions {
  /** Such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  /** The provider's name of the model. */
  readonly name: string;
  readonly clock: Pick<Clock, "sleep">;
  readonly attempts?: number;
}

/** A text is a few thousand characters at most, and a number of a vector about twenty. */
const limits = { ms: 60_000, bytes: 64_000_000 };
const textsAtOnce = 64;
/** A provider that asks for more time is asked again when somebody wants something the next time. */
const longestWaitMs = 60_000;
const wordsMost = 300;
/** More is no vector that a database can search. */
const dimensionsMost = 16_000;

const answer = z.object({
  data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()).min(1).max(dimensionsMost) })),
});

/** Embeds by a service that speaks the protocol of OpenAI; how long its vectors are it says with the first answer. */
export class Endpoint {
  readonly #options: EndpointOptions;
  #dimensions: number | undefined;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  /** Asks for one vector, to find out how long they are. */
  async open(): Promise<Embedder> {
    const [vector] = await this.embed(["Hello."]);
    const dimensions = vector?.length ?? 0;
    return { model: `${this.#options.name}@${dimensions}`, dimensions, embed: (texts) => this.embed(texts) };
  }

  async embed(texts: readonly string[], attempts = this.#options.attempts ?? 4): Promise<readonly Float32Array[]> {
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += textsAtOnce)
      vectors.push(...(await this.#insist(texts.slice(from, from + textsAtOnce), attempts)));
    return vectors;
  }

  async #insist(texts: readonly string[], attempts: number): Promise<Float32Array[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#ask(texts);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const waitMs = error.afterMs ?? 1_000 * 2 ** (attempt - 1);
        if (error.kind !== "unavailable" || attempt >= attempts || waitMs > longestWaitMs) throw error;
        await this.#options.clock.sleep(waitMs);
      }
    }
  }

  async #ask(texts: readonly string[]): Promise<Float32Array[]> {
    const { baseUrl, apiKey, name } = this.#options;
    let response: Response;
    let body: string;
    try {
      response = await fetchWithin(
        `${baseUrl}/embeddings`,
        {
          method: "POST",
          headers: { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
          // Some servers refuse empty texts.
          body: JSON.stringify({ model: name, input: texts.map((text) => text || " "), encoding_format: "float" }),
        },
        limits,
      );
      body = await response.text();
    } catch (error) {
      throw this.#refusal(networkReason(error).message, {
        kind: error instanceof OverLimit ? "misconfigured" : "unavailable",
      });
    }
    if (!response.ok) {
      const { status, headers } = response;
      const after = Number(headers.get("retry-after") ?? Number.NaN);
      throw this.#refusal(`it answered ${status}: ${body}`, {
        kind: kindOf(status),
        ...(after >= 0 && { afterMs: after * 1_000 }),
      });
    }
    return this.#read(body, texts.length);
  }

  #read(body: string, count: number): Float32Array[] {
    const found = answer.safeParse(parseJson(body));
    if (!found.success || found.data.data.length !== count)
      throw this.#refusal(`it answered with something else than ${count} vectors: ${body}`, {});
    const rows = found.data.data.map((row, place) => ({ place, ...row }));
    const sorted = rows.toSorted((a, b) => (a.index ?? a.place) - (b.index ?? b.place));
    return sorted.map(({ embedding }) => {
      this.#dimensions ??= embedding.length;
      if (embedding.length !== this.#dimensions) {
        const words = `it answered with a vector of ${embedding.length} numbers, and before with ${this.#dimensions}`;
        throw this.#refusal(`${words}: another model has this name now. Start Clevernet again to use it`, {});
      }
      const vector = normalise(Float32Array.from(embedding));
      if (!vector) throw this.#refusal("it answered with a vector without a direction", {});
      return vector;
    });
  }

  #refusal(words: string, { kind = "misconfigured", afterMs }: Partial<Pick<Refusal, "kind" | "afterMs">>): Refusal {
    const { baseUrl, apiKey, name } = this.#options;
    const safe = (apiKey ? words.replaceAll(apiKey, "[key]") : words).replace(/\s+/g, " ").trim();
    const said = safe.length > wordsMost ? `${safe.slice(0, wordsMost)}…` : safe;
    const remedy = kind !== "misconfigured" ? "" : " – check baseUrl, name and key of embeddings in the configuration";
    return new Refusal(`The embedding model ${name} at ${baseUrl} gives no vectors: ${said}${remedy}`, kind, afterMs);
  }
}

class Refusal extends EmbeddingError {
  /** Time that the provider asked us to wait. */
  readonly afterMs: number | undefined;

  constructor(message: string, kind: EmbeddingErrorKind, afterMs: number | undefined) {
    super(message, kind);
    this.afterMs = afterMs;
  }
}

const kindOf = (status: number): EmbeddingErrorKind => {
  if (status >= 500 || status === 408 || status === 429) return "unavailable";
  return status === 400 || status === 413 || status === 422 ? "refused" : "misconfigured";
};

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
