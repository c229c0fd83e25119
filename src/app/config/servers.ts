import { z } from "zod";
import { section } from "../../base/lib/problems.ts";
import { isReachEntry } from "../../base/lib/reach-entry.ts";
import type { ServerSettings } from "../../domain/servers/server-settings.ts";
import { isWebUrl } from "./values.ts";

const kinds = ["read", "create", "update", "delete"] as const;
const name = "a name of 1 to 20 characters a-z, 0-9 and - that begins with a letter";
const isServerName = (text: string): boolean => /^[a-z][a-z0-9-]{0,19}$/.test(text);
const url = "a URL such as https://wiki.example.org/mcp";
const headers = `headers such as Authorization: "Bearer \${TOKEN}"`;
const command = "a program with its arguments, such as [node, server.js]";
const environment = "values by their names, such as LANG: en";
const hosts = "a list of hosts, such as [npm, example.org, .example.org]";
const patterns = 'a list of names of tools, such as "search_*"';
const tools = `kinds of tools by their names, such as move_file: delete (${kinds.join(", ")})`;
const seconds = "a whole number of seconds from 1 to 3600";

const serverSection = section({
  url: z
    .string(url)
    .refine(isWebUrl, url)
    .optional()
    .describe(
      "Its address, which speaks streamable HTTP. One that is not public must stand in `web.allow`, with its port.",
    ),
  command: z
    .array(z.string(command).min(1, command), command)
    .min(1, command)
    .optional()
    .describe(
      "In place of `url`: the server is a program, which is spoken with by its standard input and output. It runs in a sandbox of its own, with the image and the limits of `sandbox`.",
    ),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/, `expected ${environment}`), z.string(environment), environment)
    .default({})
    .describe("Of `command`: environment of the program, such as a key. It is shown to nobody."),
  network: z
    .array(z.string().trim().toLowerCase().refine(isReachEntry, hosts), hosts)
    .default([])
    .describe(
      "Of `command`: hosts that the program may reach, as in `sandbox.network`. Without it there is no network.",
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
  timeoutSeconds: z
    .int(seconds)
    .min(1, seconds)
    .max(3_600, seconds)
    .default(60)
    .describe("Longest time of one call without a sign of progress; with such signs it may take ten times as long."),
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
}).superRefine(({ url: address, command: program, env, headers: sent, network: reach }, context) => {
  const issue = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  if ((address === undefined) === (program === undefined)) issue("url", `exactly one of url and command (${url})`);
  if (program !== undefined && Object.keys(sent).length > 0) issue("headers", "none beside command");
  if (address !== undefined && Object.keys(env).length > 0) issue("env", "none beside url");
  if (address !== undefined && reach.length > 0) issue("network", "none beside url");
});

/** Section `mcp` of config.yaml. */
export const serversSection = z.record(
  z.string().refine(isServerName, `expected ${name}`),
  serverSection,
  "servers by name, such as wiki: { url: https://wiki.example.org/mcp }",
);

type Way = Pick<z.output<typeof serverSection>, "command" | "env" | "headers" | "network" | "url">;

function doorOfServer({ command: [program, ...rest] = [], env, headers: sent, network, url: address = "" }: Way) {
  return program === undefined
    ? { url: address, headers: sent }
    : { command: [program, ...rest] as const, env, network };
}

/** Settings as the section means them. */
export const serverSettings = (servers: z.output<typeof serversSection>): ServerSettings[] =>
  Object.entries(servers).map(([server, { include, timeoutSeconds, tools: named, trustAnnotations, ...way }]) => ({
    name: server,
    door: doorOfServer(way),
    include,
    timeoutMs: timeoutSeconds * 1_000,
    isTrusted: trustAnnotations,
    kinds: named,
  }));
