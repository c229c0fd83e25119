import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";
import { providers, type SearchAsked, type SearchSettings, type WebResults } from "./search-providers.ts";

const limits = { ms: 10_000, bytes: 5_000_000 };
const pauseMost = 5_000;
const resultsMost = 20;

/** Searches the web with one of several services. Its host comes from the configuration; the results are strangers' text. */
export class WebSearcher {
  readonly #settings: SearchSettings;

  constructor(settings: SearchSettings) {
    this.#settings = settings;
  }

  /** Rejects with a `UserError` that names the service and what to do, or with the signal's reason. */
  async search(asked: SearchAsked, signal: AbortSignal): Promise<WebResults> {
    const provider = providers[this.#settings.provider];
    let refused: Response | undefined;
    for (const { url, init } of provider.requests(this.#settings, asked)) {
      const response = await this.#ask(url, { ...init, signal });
      if (response.ok) return this.#read(response, provider.read);
      refused ??= response;
      // Another form of the request is only tried where the service does not know this one.
      if (![400, 401, 404, 405].includes(response.status)) break;
    }
    throw this.#error(`answered ${refused?.status}`, provider.remedy(refused?.status ?? 0));
  }

  async #read(response: Response, read: (json: unknown) => WebResults): Promise<WebResults> {
    let json: unknown;
    try {
      json = await response.json();
    } catch {
      throw this.#error("answered with something that is no JSON", "look at its address in config.yaml");
    }
    const { results, note } = read(json);
    const usable = results.filter(({ url }) => /^https?:\/\//i.test(url) && URL.canParse(url));
    return { results: usable.slice(0, resultsMost), note };
  }

  /** Asks once more where the service says that it has too much to do. */
  async #ask(url: URL, init: RequestInit & { readonly signal: AbortSignal }): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      const response = await fetchWithin(url, init, limits).catch((thrown: unknown) => {
        init.signal.throwIfAborted();
        throw this.#error(`cannot be reached: ${networkReason(thrown).message}`, "look at its address in config.yaml");
      });
      if (attempt > 1 || (response.status !== 429 && response.status < 500)) return response;
      const pause = Number(response.headers.get("retry-after") ?? 1) * 1_000;
      if (!(pause >= 0 && pause <= pauseMost)) return response;
      await response.body?.cancel();
      await systemClock.sleep(pause, init.signal);
    }
  }

  #error(what: string, remedy: string): UserError {
    return new UserError(`The search service (${this.#settings.provider}) ${what}: ${remedy}.`);
  }
}
