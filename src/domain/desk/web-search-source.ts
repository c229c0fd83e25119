import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { addressForm } from "../../base/lib/web-address.ts";
import { element } from "../../base/lmml/element.ts";
import { toStored } from "../../base/prompt/stored.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { WindowSource } from "./windows.ts";

/** Question to a service that searches the web. */
export interface WebSearchArguments {
  readonly engine: "web" | "youtube";
  /** From 1. */
  readonly page: number;
}

/** Searches the web. */
export interface WebSearch {
  search(
    asked: WebSearchArguments & { readonly query: string },
    signal: AbortSignal,
  ): Promise<{
    readonly results: readonly {
      readonly url: string;
      readonly title: string;
      readonly snippet: string;
      readonly published: string | undefined;
    }[];
    readonly note: string | undefined;
  }>;
}

/** Name of search results among the texts that nobody vouches for: strangers wrote what stands in them. */
export const searchTaint = "web:search results";

/** A search in the web: each result is a line of the window. */
export const webSearchSource = (searcher: WebSearch | undefined, clock: Clock): WindowSource => ({
  async read(query, args, { signal }) {
    if (!searcher)
      throw new UserError("There is no search of the web here: an operator has to set web.search in config.yaml.");
    const asked = JSON.parse(args) as WebSearchArguments;
    const { results, note } = await searcher.search({ ...asked, query }, signal);
    if (results.length === 0 && note !== undefined) throw new UserError(`Nothing was found, but ${note}.`);
    const shown = results.map(({ url, title, snippet, published }, at) =>
      element("searchResult", { path: url, score: (1 - at / results.length).toFixed(1), title, published }, [
        element("match", { line: 1 }, snippet),
      ]),
    );
    return {
      contentType: "text/lmml",
      content: toStored(element("content", {}, shown)),
      sources: [],
      taint: [searchTaint],
      attributes: { fetchedAt: eventTime(clock.now()), ...(note !== undefined && { note }) },
      addresses: results.flatMap(({ url }) => addressForm(url) ?? []),
    };
  },
});
