import { byHand, downloadModel } from "../../adapters/embedding/download.ts";
import { type Embedder, EmbeddingError } from "../../adapters/embedding/embedder.ts";
import { Endpoint } from "../../adapters/embedding/endpoint.ts";
import { identifyModel, type ModelRelease, miniLm, missingFiles } from "../../adapters/embedding/model-files.ts";
import { EmbeddingThread } from "../../adapters/embedding/thread.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";

/** How memory is embedded, as the configuration says. */
export type EmbeddingSettings =
  | { readonly kind: "off" }
  | {
      readonly kind: "local";
      /** Folder with the files of the model. */
      readonly dir: string;
      /** Address below which missing files are fetched; undefined: they are not fetched. */
      readonly downloadFrom: string | undefined;
    }
  | {
      readonly kind: "endpoint";
      readonly baseUrl: string;
      readonly apiKey: string | undefined;
      readonly name: string;
    };

interface EmbeddingParts {
  readonly settings: EmbeddingSettings;
  /** Name of this process among those that may fetch into the same folder. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when there is a model from now on. */
  readonly onReady?: () => void;
  /** The model that is fetched. */
  readonly release?: ModelRelease;
  /** Time after which a local model that is not used is put away. */
  readonly idleMs?: number;
}

/** Embedding at this moment. `words` is memory that is searched by words alone, and why. */
export type EmbeddingState =
  | { readonly by: "words"; readonly why: string }
  | { readonly by: "fetching"; readonly done: number; readonly total: number }
  | { readonly by: "meaning"; readonly model: string; readonly dimensions: number };

/** An embedder for questions to memory. */
interface QuestionEmbedder extends Embedder {
  /** Time after which a question had better be answered by words alone, where an answer in a room waits for it. */
  readonly patienceMs: number;
}

/** Longest wait of a question for its vector, in milliseconds; a loaded model needs about 10 for a short one. */
const patience = { notLoaded: 10, loaded: 50, endpoint: 300 };
/** Pauses between attempts to get a model, from the first to the longest. */
const firstPauseMs = 60_000;
const longestPauseMs = 60 * 60_000;
/** Share of a download after which the log hears of it again. */
const progressStep = 0.25;

/** The embedding model: gets it in the background, and says what became of it. Without one, memory is searched by words. */
export class Embeddings {
  readonly #parts: EmbeddingParts;
  readonly #stopped = new AbortController();
  #state: EmbeddingState;
  #present: Embedder | undefined;
  #thread: EmbeddingThread | undefined;
  #opening: Promise<void> = Promise.resolve();

  constructor(parts: EmbeddingParts) {
    this.#parts = parts;
    const why = parts.settings.kind === "off" ? "embeddings are off in the configuration" : "the model is looked for";
    this.#state = { by: "words", why };
  }

  /** The model, once it is there. */
  get present(): Embedder | undefined {
    return this.#present;
  }

  get state(): EmbeddingState {
    return this.#state;
  }

  /** True if a local model is in memory. */
  get isLoaded(): boolean {
    return this.#thread?.isLoaded ?? false;
  }

  /** Gets the model in the background. */
  start(): void {
    this.#opening = this.#keepOpening();
  }

  /** Breaks off a download, and waits for the texts that are at work. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#opening;
    await this.#thread?.stop();
  }

  /**
   * The model for questions that somebody waits for: they are embedded before everything else. Undefined without a
   * model. One that is not loaded is loaded by the first question, which had better not wait for that.
   */
  get forQuestions(): QuestionEmbedder | undefined {
    const thread = this.#thread;
    if (!this.#present || !thread) return this.#present && { ...this.#present, patienceMs: patience.endpoint };
    const patienceMs = thread.isLoaded ? patience.loaded : patience.notLoaded;
    return { ...this.#present, patienceMs, embed: (texts) => thread.embed(texts, true) };
  }

  async #keepOpening(): Promise<void> {
    const { settings, log, clock } = this.#parts;
    if (settings.kind === "off") return log.info("memory is searched by words alone: embeddings are off");
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        this.#present = await this.#open(settings);
        const { model, dimensions } = this.#present;
        this.#state = { by: "meaning", model, dimensions };
        log.info({ model, dimensions }, "memory is searched by words and by meaning");
        this.#parts.onReady?.();
        return;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (!(error instanceof EmbeddingError)) throw error;
        const said = "why" in this.#state ? this.#state.why : "";
        this.#state = { by: "words", why: error.message };
        // It is said once: attempts that fail alike follow for as long as the machine has no network.
        if (said !== error.message) log.warn(`memory is searched by words alone: ${error.message}`);
      }
      await clock.sleep(pauseMs, this.#stopped.signal).catch(() => {});
      if (this.#stopped.signal.aborted) return;
    }
  }

  async #open(settings: Exclude<EmbeddingSettings, { kind: "off" }>): Promise<Embedder> {
    const { clock, idleMs, release = miniLm } = this.#parts;
    if (settings.kind === "endpoint") return new Endpoint({ ...settings, clock }).open();
    const { dir, downloadFrom } = settings;
    if ((await missingFiles(dir, release)).length > 0) {
      if (downloadFrom === undefined)
        throw new EmbeddingError(
          `there is no embedding model in ${dir}, and none is fetched. ${byHand({ dir, release })}`,
          "misconfigured",
        );
      await this.#fetch(dir, downloadFrom);
    }
    const found = await identifyModel(dir, release);
    const thread = new EmbeddingThread(dir, idleMs);
    this.#thread = thread;
    const embed = (texts: readonly string[]) => thread.embed(texts);
    // Only the model itself knows how many numbers another one gives.
    const dimensions = found.dimensions ?? (await embed([found.model]))[0]?.length ?? 0;
    return { model: found.model, dimensions, embed };
  }

  async #fetch(dir: string, url: string): Promise<void> {
    const { instance, log, release = miniLm } = this.#parts;
    let said = 0;
    log.info({ from: url, into: dir }, `the embedding model ${release.model} is fetched in the background`);
    await downloadModel({
      release,
      dir,
      url,
      owner: digest(instance).replace(/\W/g, "").slice(0, 8),
      signal: this.#stopped.signal,
      onProgress: (done, total) => {
        this.#state = { by: "fetching", done, total };
        if (done / total < said + progressStep) return;
        said = done / total;
        log.info(`${Math.round(said * 100)} % of the embedding model are fetched`);
      },
    });
  }
}
