import { WebSearcher } from "../../adapters/web/search.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type CheckSetting, type Finding, ok, warning } from "./check-finding.ts";

const meanwhile = "Until then agents cannot search the web; everything else works.";

/** Looks whether the web can be searched. Only one's own SearXNG is asked: the other services are paid for each search. */
export async function* checkWeb({ config: { web } }: CheckSetting): AsyncGenerator<Finding> {
  yield ok("web", web.hasPages ? "agents may open pages." : "web.pages is off: agents cannot open pages.");
  if (!web.search) {
    yield ok("web-search", "no service is configured: agents cannot search the web.");
  } else if (web.search.provider !== "searxng") {
    yield ok("web-search", `${web.search.provider} is configured; it is not asked, since each search costs.`);
  } else {
    try {
      const asked = { query: "weather", engine: "web", page: 1 } as const;
      const { results, note } = await new WebSearcher(web.search).search(asked, AbortSignal.any([]));
      if (results.length > 0) yield ok("web-search", `SearXNG gives results (${results.length}).`);
      else
        yield warning(
          "web-search",
          `SearXNG finds nothing${note ? `: ${note}` : ""}.`,
          `Look at its engines. ${meanwhile}`,
        );
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      yield warning("web-search", messageOf(error), `See web.search in config.yaml. ${meanwhile}`);
    }
  }
}
