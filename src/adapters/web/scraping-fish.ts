import { UserError } from "../../base/lib/errors.ts";
import { fetchWithin, networkReason, OverLimit } from "../../base/lib/outside.ts";
import { type Fetched, type Fetcher, type FetchRequest, taken } from "./fetched.ts";
import type { WayOut } from "./way-out.ts";

/** The service that fetches pages, as it is configured. */
export interface ScrapingFishSettings {
  readonly url: string;
  readonly apiKey: string;
  /** Pages are loaded in a browser there. */
  readonly hasBrowser: boolean;
}

export const scrapingFishUrl = "https://scraping.narf.ai/api/v1/";

/** It tries several times by itself before it gives up. */
const limits = { ms: 90_000, bytes: 50_000_000 };

/**
 * Has a service fetch public addresses, in place of this machine. An address has to pass the rules of the way out first, and
 * a place that an operator has opened is asked directly: the service could not reach it.
 */
export class ScrapingFish implements Fetcher {
  readonly #settings: ScrapingFishSettings;
  readonly #wayOut: WayOut;

  constructor(settings: ScrapingFishSettings, wayOut: WayOut) {
    this.#settings = settings;
    this.#wayOut = wayOut;
  }

  async get(address: string, request: FetchRequest): Promise<Fetched> {
    const wanted = this.#wayOut.check(address);
    if (this.#wayOut.isOpened(wanted)) return this.#wayOut.get(address, request);
    const { apiKey, hasBrowser, url } = this.#settings;
    const asked = new URL(url);
    asked.searchParams.set("api_key", apiKey);
    asked.searchParams.set("url", wanted.href);
    if (hasBrowser) asked.searchParams.set("render_js", "true");
    const { signal } = request;
    try {
      const response = await fetchWithin(asked, { redirect: "manual", signal }, limits);
      const refusal = refusalOf(response.status);
      if (refusal !== undefined) {
        await response.body?.cancel();
        throw new UserError(`${wanted.host} cannot be read: ScrapingFish ${refusal}.`);
      }
      return await taken(wanted, response, request.most);
    } catch (thrown) {
      signal.throwIfAborted();
      if (thrown instanceof UserError) throw thrown;
      // Words of the network could name the address that was asked, and the key is in it.
      const why = thrown instanceof OverLimit ? "has sent no whole answer in time" : "cannot be reached";
      throw new UserError(`${wanted.host} cannot be read: ScrapingFish ${why}${codeOf(thrown)}.`);
    }
  }

  close(): Promise<void> {
    return this.#wayOut.close();
  }
}

/** Says what the service itself has to say with a status; undefined for that of a page. */
function refusalOf(status: number): string | undefined {
  if (status === 401) return "does not know the key: an operator has to look at web.scrapingFish in config.yaml";
  if (status === 402) return "wants to be paid: an operator has to look after it";
  if (status === 422) return "does not take this address";
  if (status === 429) return "is asked for too much at once: try again in a minute";
  return status >= 500 ? "did not get an answer there" : undefined;
}

const codeOf = (thrown: unknown): string => {
  const reason = networkReason(thrown);
  return "code" in reason && /^[A-Z_]{1,40}$/.test(String(reason.code)) ? ` (${reason.code})` : "";
};
