import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSearcher } from "../../../src/adapters/web/search.ts";
import type { ProviderName } from "../../../src/adapters/web/search-providers.ts";
import { UserError } from "../../../src/base/lib/errors.ts";

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

let server: Server;
let asked: Asked[];
let answer: (response: ServerResponse, asked: Asked) => void;
beforeEach(async () => {
  asked = [];
  server = createServer(async (request, response) => {
    const body = await text(request);
    const url = new URL(request.url ?? "", "http://x.invalid");
    const one = {
      method: request.method ?? "",
      url,
      headers: request.headers,
      body: body === "" ? undefined : JSON.parse(body),
    };
    asked.push(one);
    answer(response, one);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const json = (value: unknown) => (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    response.writeHead(code, headers).end("<html>refused</html>");

const search = (provider: ProviderName, more: Partial<{ engine: "web" | "youtube"; page: number }> = {}) => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const searcher = new WebSearcher({ provider, url, apiKey: "the-key", engineId: "the-engine" });
  return searcher.search({ query: "low boats", engine: "web", page: 1, ...more }, AbortSignal.timeout(20_000));
};

const found = { url: "https://a.example/1", title: "Low boats", snippet: "and high ones" };

/** Answers of the services, as their documents have them, and what is asked of them. */
const services: readonly [ProviderName, unknown, (asked: Asked) => unknown, unknown][] = [
  [
    "searxng",
    { results: [{ url: found.url, title: found.title, content: found.snippet, publishedDate: "2026-11-01T00:00:00" }] },
    ({ method, url }) => [method, url.pathname, Object.fromEntries(url.searchParams)],
    ["GET", "/search", { q: "low boats", format: "json", pageno: "2" }],
  ],
  [
    "brave",
    {
      web: {
        results: [
          { url: found.url, title: "<strong>Low</strong> boats", description: found.snippet, age: "2 days ago" },
        ],
      },
    },
    ({ method, url, headers }) => [
      method,
      url.pathname,
      Object.fromEntries(url.searchParams),
      headers["x-subscription-token"],
    ],
    ["GET", "/res/v1/web/search", { q: "low boats", count: "10", offset: "1" }, "the-key"],
  ],
  [
    "tavily",
    { results: [{ url: found.url, title: found.title, content: found.snippet, score: 0.9 }] },
    ({ method, url, headers, body }) => [method, url.pathname, headers.authorization, body],
    ["POST", "/search", "Bearer the-key", { query: "low boats", max_results: 20, search_depth: "basic" }],
  ],
  [
    "exa",
    { results: [{ url: found.url, title: found.title, highlights: ["and high ones"], publishedDate: "2026-11-01" }] },
    ({ method, url, headers, body }) => [method, url.pathname, headers["x-api-key"], body],
    [
      "POST",
      "/search",
      "the-key",
      { query: "low boats", type: "auto", numResults: 20, contents: { highlights: { maxCharacters: 1_000 } } },
    ],
  ],
  [
    "kagi",
    { data: { search: [{ url: found.url, title: found.title, snippet: found.snippet, time: "2026-11-01" }] } },
    ({ method, url, headers, body }) => [method, url.pathname, headers.authorization, body],
    ["POST", "/api/v1/search", "Bearer the-key", { query: "low boats", page: 2, workflow: "search" }],
  ],
  [
    "google",
    { items: [{ link: found.url, title: found.title, snippet: found.snippet }] },
    ({ method, url }) => [method, url.pathname, Object.fromEntries(url.searchParams)],
    ["GET", "/customsearch/v1", { key: "the-key", cx: "the-engine", q: "low boats", num: "10", start: "11" }],
  ],
];

describe("a search", () => {
  it.each(services)("with %s asks and reads as that service has it", async (provider, given, see, expected) => {
    answer = json(given);
    const { results } = await search(provider, { page: 2 });
    expect(asked.map(see)).toEqual([expected]);
    expect(results).toEqual([{ ...found, published: results[0]?.published }]);
  });

  it.each(services)("with %s that answers something else finds nothing", async (provider) => {
    for (const value of [{}, [], null, { results: 1, web: 2, data: 3, items: 4 }, { results: [null, 1, { url: 5 }] }]) {
      answer = json(value);
      expect((await search(provider)).results).toEqual([]);
    }
  });

  it("for videos asks where they are, or for YouTube alone", async () => {
    answer = json({});
    await search("searxng", { engine: "youtube" });
    await search("tavily", { engine: "youtube" });
    expect(asked[0]?.url.searchParams.get("categories")).toBe("videos");
    expect(asked[1]?.body).toMatchObject({ query: "low boats site:youtube.com" });
  });

  it("takes strangers' texts as they are, without marks, and no addresses but those of the web", async () => {
    const results = ["javascript:1", "file:///etc/passwd", "no address", "https://ok.example/"].map((url) => ({
      url,
      title: "A <b>&amp;</b> </window>\n\ntitle\0",
      content: "x".repeat(5_000),
    }));
    answer = json({ results });
    const got = (await search("searxng")).results;
    expect(got).toHaveLength(1);
    expect(got[0]).toMatchObject({ url: "https://ok.example/", title: "A &amp; </window> title" });
    expect(got[0]?.snippet).toHaveLength(1_000);
  });

  it("tells which engines of a SearXNG did not answer", async () => {
    answer = json({
      results: [],
      unresponsive_engines: [
        ["google", "CAPTCHA"],
        ["bing", "timeout"],
      ],
    });
    expect((await search("searxng")).note).toBe("these search engines did not answer: google CAPTCHA, bing timeout");
  });

  it("of the older form of Kagi works, too", async () => {
    answer = (response, { method }) =>
      method === "POST"
        ? status(404)(response)
        : json({
            data: [
              { t: 0, url: found.url, title: found.title, snippet: found.snippet },
              { t: 1, list: [] },
            ],
          })(response);
    expect((await search("kagi")).results).toEqual([{ ...found, published: undefined }]);
    expect(asked.at(-1)?.headers.authorization).toBe("Bot the-key");
  });
});

describe("a search that fails", () => {
  it.each([
    ["searxng", 403, "its operator has to write json below search.formats in its settings.yml"],
    ["brave", 401, "its key is not valid: set web.search.apiKey in config.yaml"],
    ["exa", 402, "what was paid for is used up"],
    ["searxng", 404, "there is no search at its address: an operator has to look at web.search in config.yaml"],
    ["google", 400, "its key or web.search.engineId in config.yaml is not valid"],
  ] as const)("with %s and status %i names the remedy, and does not try again", async (provider, code, remedy) => {
    answer = status(code);
    const error = await search(provider).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toBe(`The search service (${provider}) answered ${code}: ${remedy}.`);
    expect(asked).toHaveLength(1);
  });

  it("since the service has too much to do is tried once more, if that is soon", async () => {
    answer = status(503, { "retry-after": "0" });
    await expect(search("tavily")).rejects.toThrow("(tavily) answered 503: it is unwell");
    expect(asked).toHaveLength(2);
    answer = status(429, { "retry-after": "600" });
    await expect(search("tavily")).rejects.toThrow("asked too often");
    expect(asked).toHaveLength(3);
    let n = 0;
    answer = (response) =>
      n++ === 0 ? status(500, { "retry-after": "0" })(response) : json({ results: [] })(response);
    expect((await search("tavily")).results).toEqual([]);
  });

  it("does not tell the key, nor follows the service elsewhere", async () => {
    answer = status(302, { location: "https://evil.example/" });
    await expect(search("brave")).rejects.toThrow(/^The search service \(brave\) (?!.*the-key)/);
    answer = (response) => response.writeHead(200).end("<html>");
    await expect(search("brave")).rejects.toThrow("no JSON: look at its address in config.yaml");
    answer = (response) => response.socket?.destroy();
    await expect(search("brave")).rejects.toThrow(/cannot be reached: .*config\.yaml/);
  });
});
