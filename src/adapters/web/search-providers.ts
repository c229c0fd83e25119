export const providerNames = ["searxng", "brave", "tavily", "exa", "kagi", "google"] as const;
export type ProviderName = (typeof providerNames)[number];

/** Question to a service. */
export interface SearchAsked {
  readonly query: string;
  readonly engine: "web" | "youtube";
  /** From 1. */
  readonly page: number;
}

/** One result: all of it is text of strangers. */
interface WebResult {
  readonly url: string;
  readonly title: string;
  readonly snippet: string;
  readonly published: string | undefined;
}

/** A service that searches the web, as it is configured. */
export interface SearchSettings {
  readonly provider: ProviderName;
  /** Address of the service, without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Of Google: the id of the search engine. */
  readonly engineId: string | undefined;
}

/** Results, best first, and what the service has to say about them. */
export interface WebResults {
  readonly results: readonly WebResult[];
  readonly note: string | undefined;
}

interface ProviderRequest {
  readonly url: URL;
  readonly init: RequestInit;
}

interface Provider {
  /** Address of the service where none is configured; undefined: it has none of its own. */
  readonly url: string | undefined;
  readonly needsKey: boolean;
  /** Requests for the same; each after the first is another form, for an older version of the service. */
  requests(settings: SearchSettings, asked: SearchAsked): readonly ProviderRequest[];
  read(json: unknown): WebResults;
  /** Says what to do about a status. */
  remedy(status: number): string;
}

type Node = Readonly<Record<string, unknown>>;

const perPage = 10;
const snippetMost = 1_000;

const nodeOf = (value: unknown): Node => (typeof value === "object" && value !== null ? (value as Node) : {});
const listOf = (value: unknown): Node[] => (Array.isArray(value) ? value.map(nodeOf) : []);

const words = (value: unknown, most: number): string =>
  (Array.isArray(value) ? value.join(" … ") : typeof value === "string" ? value : "")
    // Some mark the words that were sought.
    .replace(/<\/?(?:b|strong|em|mark)>/gi, "")
    .replaceAll("\0", "")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, most)
    .toWellFormed();

const resultOf = (url: unknown, title: unknown, snippet: unknown, published: unknown): WebResult => ({
  url: typeof url === "string" ? url : "",
  title: words(title, 300),
  snippet: words(snippet, snippetMost),
  published: words(published, 40) || undefined,
});

const withResults = (results: readonly WebResult[], note?: string): WebResults => ({ results, note });

const addressOf = (base: string, path: string, query: Readonly<Record<string, string | number>> = {}): URL => {
  const url = new URL(`${base}${path}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return url;
};

const post = (url: URL, headers: Readonly<Record<string, string>>, body: unknown): ProviderRequest => ({
  url,
  init: {
    method: "POST",
    redirect: "error",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  },
});

const get = (url: URL, headers: Readonly<Record<string, string>> = {}): ProviderRequest => ({
  url,
  init: { redirect: "error", headers: { accept: "application/json", ...headers } },
});

/** Words for a service that cannot search for videos alone. */
const sought = ({ query, engine }: SearchAsked): string => (engine === "youtube" ? `${query} site:youtube.com` : query);

const remedyByKey = (status: number): string => {
  if (status === 401 || status === 403) return "its key is not valid: set web.search.apiKey in config.yaml";
  if (status === 402 || status === 432 || status === 433) return "what was paid for is used up";
  if (status === 404 || status === 405)
    return "there is no search at its address: an operator has to look at web.search in config.yaml";
  if (status === 429) return "it was asked too often; try again in a minute";
  return status >= 500 ? "it is unwell; try again later" : "try other words";
};

const searxngRemedy = (status: number): string =>
  status === 403
    ? "its operator has to write json below search.formats in its settings.yml"
    : status === 429
      ? "its limiter takes us for a bot: its operator has to let this machine pass"
      : remedyByKey(status);

/** Every service that can be asked, and how. */
export const providers: Readonly<Record<ProviderName, Provider>> = {
  searxng: {
    url: undefined,
    needsKey: false,
    requests: ({ url }, { query, engine, page }) => [
      get(
        addressOf(url, "/search", {
          q: query,
          format: "json",
          pageno: page,
          ...(engine === "youtube" && { categories: "videos" }),
        }),
      ),
    ],
    read: (json) => {
      const { results, unresponsive_engines: dead } = nodeOf(json);
      const found = listOf(results).map((one) => resultOf(one.url, one.title, one.content, one.publishedDate));
      const silent = Array.isArray(dead) ? dead.map((one) => words([one].flat(2).join(" "), 100)) : [];
      const note = `these search engines did not answer: ${silent.slice(0, 10).join(", ")}`;
      return withResults(found, silent.length > 0 ? note : undefined);
    },
    remedy: searxngRemedy,
  },
  brave: {
    url: "https://api.search.brave.com",
    needsKey: true,
    requests: ({ url, apiKey = "" }, asked) => [
      get(addressOf(url, "/res/v1/web/search", { q: sought(asked), count: perPage, offset: asked.page - 1 }), {
        "x-subscription-token": apiKey,
      }),
    ],
    read: (json) =>
      withResults(
        listOf(nodeOf(nodeOf(json).web).results).map((one) => resultOf(one.url, one.title, one.description, one.age)),
      ),
    remedy: remedyByKey,
  },
  tavily: {
    url: "https://api.tavily.com",
    needsKey: true,
    requests: ({ url, apiKey = "" }, asked) => [
      post(
        addressOf(url, "/search"),
        { authorization: `Bearer ${apiKey}` },
        {
          query: sought(asked),
          max_results: 2 * perPage,
          search_depth: "basic",
        },
      ),
    ],
    read: (json) =>
      withResults(
        listOf(nodeOf(json).results).map((one) => resultOf(one.url, one.title, one.content, one.published_date)),
      ),
    remedy: remedyByKey,
  },
  exa: {
    url: "https://api.exa.ai",
    needsKey: true,
    requests: ({ url, apiKey = "" }, asked) => [
      post(
        addressOf(url, "/search"),
        { "x-api-key": apiKey },
        {
          query: sought(asked),
          type: "auto",
          numResults: 2 * perPage,
          contents: { highlights: { maxCharacters: snippetMost } },
        },
      ),
    ],
    read: (json) =>
      withResults(
        listOf(nodeOf(json).results).map((one) => resultOf(one.url, one.title, one.highlights, one.publishedDate)),
      ),
    remedy: remedyByKey,
  },
  kagi: {
    url: "https://kagi.com",
    needsKey: true,
    requests: ({ url, apiKey = "" }, asked) => [
      post(
        addressOf(url, "/api/v1/search"),
        { authorization: `Bearer ${apiKey}` },
        { query: sought(asked), page: asked.page, workflow: "search" },
      ),
      get(addressOf(url, "/api/v0/search", { q: sought(asked), limit: 2 * perPage }), {
        authorization: `Bot ${apiKey}`,
      }),
    ],
    read: (json) => {
      const { data } = nodeOf(json);
      const found = Array.isArray(data) ? listOf(data).filter(({ t }) => t === 0) : listOf(nodeOf(data).search);
      return withResults(found.map((one) => resultOf(one.url, one.title, one.snippet, one.time ?? one.published)));
    },
    remedy: remedyByKey,
  },
  google: {
    url: "https://www.googleapis.com",
    needsKey: true,
    requests: ({ url, apiKey = "", engineId = "" }, asked) => [
      get(
        addressOf(url, "/customsearch/v1", {
          key: apiKey,
          cx: engineId,
          q: sought(asked),
          num: perPage,
          start: (asked.page - 1) * perPage + 1,
        }),
      ),
    ],
    read: (json) =>
      withResults(listOf(nodeOf(json).items).map((one) => resultOf(one.link, one.title, one.snippet, undefined))),
    remedy: (status) =>
      status === 400 ? "its key or web.search.engineId in config.yaml is not valid" : remedyByKey(status),
  },
};
