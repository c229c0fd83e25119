import { z } from "zod";
import { section } from "../../base/lib/problems.ts";
import type { ServerSettings } from "../../domain/servers/server-settings.ts";
import { isWebUrl } from "./values.ts";

const kinds = ["read", "create", "update", "delete"] as const;
const name = "a name of 1 to 20 characters a-z, 0-9 and - that begins with a letter";
const isServerName = (text: string): boolean => /^[a-z][a-z0-9-]{0,19}$/.test(text);
const url = "a URL such as https://wiki.example.org/mcp";
const headers = `headers such as Authorization: "Bearer \${TOKEN}"`;
const patterns = 'a list of names of tools, such as "search_*"';
const tools = `kinds of tools by their names, such as move_file: delete (${kinds.join(", ")})`;
const seconds = "a whole number of seconds from 1 to 3600";

const serverSection = section({
  url: z
    .string(url)
    .refine(isWebUrl, url)
    .describe(
      "Its address, which speaks streamable HTTP. One that is not public must stand in `web.allow`, with its port.",
    ),
  headers: z
    .record(
      z.string().regex(/^[A-Za-z0-9-]+$/, `expected ${headers}`),
      z.string(headers).regex(/^[\x20-\x7e]*$/, headers),
      headers,
    )
    .default({})
    .describe("Headers of each request, such as a key. They are shown to nobody."),
  include: z
    .array(z.string(patterns).min(1, patterns), patterns)
    .default(["*"])
    .describe("Tools that agents may have."),
  timeoutSeconds: z.int(seconds).min(1, seconds).max(3_600, seconds).default(60).describe("Longest time of one call."),
  trustAnnotations: z
    .boolean("true or false")
    .default(false)
    .describe(
      "Believes what the server says about its tools: which of them only read, change nothing that is there, may be repeated, or tell nobody else. Otherwise all of them count as `update`, ask where untrusted text was read, and are not repeated.",
    ),
  tools: z
    .record(z.string(), z.enum(kinds, `one of ${kinds.join(", ")}`), tools)
    .default({})
    .describe("Kinds of single tools, whatever the server says: `read`, `create`, `update` or `delete`."),
});

/** Section `mcp` of config.yaml. */
export const serversSection = z.record(
  z.string().refine(isServerName, `expected ${name}`),
  serverSection,
  "servers by name, such as wiki: { url: https://wiki.example.org/mcp }",
);

/** Settings as the section means them. */
export const serverSettings = (servers: z.output<typeof serversSection>): ServerSettings[] =>
  Object.entries(servers).map(([server, { timeoutSeconds, tools: named, trustAnnotations, ...settings }]) => ({
    ...settings,
    name: server,
    timeoutMs: timeoutSeconds * 1_000,
    isTrusted: trustAnnotations,
    kinds: named,
  }));
