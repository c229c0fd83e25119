import { z } from "zod";
import { type ScrapingFishSettings, scrapingFishUrl } from "../../adapters/web/scraping-fish.ts";
import { providerNames, providers, type SearchSettings } from "../../adapters/web/search-providers.ts";
import { section } from "../../base/lib/problems.ts";
import { OpenDoors } from "../../base/lib/public-address.ts";
import { apiKey, filled, webUrl } from "./values.ts";

/** How agents reach the web. */
export interface WebSettings {
  /** Agents may open pages. */
  readonly hasPages: boolean;
  /** Places that are reached although they are not public, as `host:port`. */
  readonly allow: readonly string[];
  readonly search: SearchSettings | undefined;
  /** Service that fetches pages; undefined: this machine does. */
  readonly scrapingFish: ScrapingFishSettings | undefined;
  /** Version of the app as which YouTube is asked; undefined: it is not asked. */
  readonly youtubeVersion: string | undefined;
}

const ways = ["direct", "off"] as const;
const door = "a host and a port, such as wiki.example.lan:8080 or 127.0.0.1:80";

const version = 'the version of an app in quotes, such as "20.10.38"';

const isDoor = (text: string): boolean => {
  if (!/^(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/.test(text) || !URL.canParse(`http://${text}`)) return false;
  return new OpenDoors([text]) instanceof OpenDoors;
};

const searchSection = section({
  provider: z
    .enum(providerNames, `one of ${providerNames.join(", ")}`)
    .default("searxng")
    .describe("Service that searches. `searxng` is one that you run yourself; the others want a key."),
  url: webUrl("http://127.0.0.1:8888")
    .optional()
    .describe("Address of the service: of `searxng` it must be given; the others know their own."),
  apiKey: apiKey().optional().describe("Key for the service."),
  engineId: filled("the id of a search engine")
    .optional()
    .describe("Of `google`: id of the Programmable Search Engine."),
}).superRefine(({ provider, url, apiKey: key, engineId }, context) => {
  const issue = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  if (url === undefined && providers[provider].url === undefined)
    issue("url", "the address of your SearXNG, such as http://127.0.0.1:8888");
  if (key === undefined && providers[provider].needsKey) issue("apiKey", `a key of ${provider}, or apiKeyFile: PATH`);
  if (engineId === undefined && provider === "google") issue("engineId", "the id of a Programmable Search Engine");
});

/** Section `web` of config.yaml. */
export const webSection = section({
  pages: z
    .enum(ways, `one of ${ways.join(", ")}`)
    .default("direct")
    .describe(
      "How agents open pages. `direct`: this machine fetches them, and nothing but public addresses. `off`: they cannot.",
    ),
  allow: z
    .array(z.string(door).refine(isDoor, door), `a list of ${door}`)
    .default([])
    .describe("Places that agents may open although they are not public: exactly these hosts and ports."),
  scrapingFish: section({
    apiKey: apiKey().describe("Key for the service."),
    renderJs: z
      .boolean("true or false")
      .default(true)
      .describe(
        "Pages are loaded in a browser there, so that those can be read which are empty without JavaScript. It costs more.",
      ),
  })
    .optional()
    .describe(
      "With it, the service ScrapingFish fetches pages in place of this machine, and is told all addresses: `scrapingFish: { apiKeyFile: fish.key }`. Places in `allow` are asked directly.",
    ),
  youtube: section({
    clientVersion: z
      .string(version)
      .regex(/^\d+(?:\.\d+){1,4}$/, version)
      .default("20.10.38")
      .describe("Version of YouTube's app for Android as which it is asked. Old ones are refused one day."),
  })
    .optional()
    .describe("With it, agents can read what YouTube says about videos, and their captions: `youtube: {}`."),
  search: searchSection.optional().describe("Service by which agents search the web. Without it they cannot."),
});

/** Settings as the section means them. */
export function webSettings({ pages, allow, scrapingFish, search, youtube }: z.output<typeof webSection>): WebSettings {
  return {
    hasPages: pages !== "off",
    allow,
    scrapingFish: scrapingFish && {
      url: scrapingFishUrl,
      apiKey: scrapingFish.apiKey,
      hasBrowser: scrapingFish.renderJs,
    },
    youtubeVersion: youtube?.clientVersion,
    search: search && {
      provider: search.provider,
      url: search.url ?? providers[search.provider].url ?? "",
      apiKey: search.apiKey,
      engineId: search.engineId,
    },
  };
}
