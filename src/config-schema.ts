import { z } from "zod";
import { each } from "./agent/budget.ts";
import { isActor, levels } from "./agent/permissions.ts";
import { type AgentSettings, agentFields, budgetLimit, refusedAgentFields, text } from "./agent/settings.ts";
import type { AgentName, RoomId, UserId } from "./lib/ids.ts";
import { isAgentName, isRoomId, isServerName, isUserId } from "./lib/matrix-id.ts";
import { section } from "./lib/problems.ts";

const webUrl = (example: string) => {
  const expected = `a URL such as ${example}`;
  return z
    .string(expected)
    .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), expected)
    .transform((text) => text.replace(/\/+$/, ""));
};

const filled = (expected: string) => text(expected).min(1, expected);

const serverName = "the name behind the colon in user ids, such as example.org";
const userId = 'a full user id in quotes, such as "@you:example.org"';
const actor = `${userId}, a pattern such as "@*:example.org", a homeserver such as example.org, or a room id`;
const permissions = 'levels by actor, such as "@you:example.org": admin';
const agents = "agents by name, such as helper: { displayName: Helper }";
const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const roomId = 'a room id in quotes, such as "!id:example.org" (an address with # is not enough)';
const port = "a port from 1 to 65535";
const postgresUrl = "postgres://USER:PASSWORD@HOST/DATABASE";
const level = `one of ${levels.join(", ")}`;
const agentName =
  "an agent's name of 1 to 200 characters a-z, 0-9 and . _ = + - (not dots alone: it names a folder, too)";

/** Whether a key can stand in a header: what cannot, is repeated by whoever refuses it. */
export const isApiKey = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

const apiKey = "a key of one line without spaces, apiKeyFile: PATH, or nothing where the model asks for none";
const modelSection = section({
  baseUrl: webUrl("https://openrouter.ai/api/v1").default("https://openrouter.ai/api/v1"),
  apiKey: z.string(apiKey).refine(isApiKey, apiKey).optional(),
  name: filled("the name of a model, such as anthropic/claude-sonnet-4.5"),
  submodel: filled("the name of a fast model, such as google/gemini-2.5-flash").optional(),
});

const databaseSection = section({
  dir: filled("a folder, such as data").optional(),
  url: z
    .string(postgresUrl)
    .refine((url) => /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url), postgresUrl)
    .optional(),
}).superRefine(({ dir, url }, context) => {
  if ((dir === undefined) !== (url === undefined)) return;
  const message = `exactly one of dir (a folder for the embedded database) and url or urlFile (${postgresUrl})`;
  context.addIssue({ code: "custom", path: ["url"], message });
});

const fileMegabytes = "a whole number of megabytes from 1 to 16";
const mediaSection = section({
  maxMegabytes: z.int(fileMegabytes).min(1, fileMegabytes).max(16, fileMegabytes).default(16),
});

const megabytes = "a whole number of megabytes, 1 or more";
const filesSection = section({ quotaMegabytes: z.int(megabytes).min(1, megabytes).default(256) });

const agentSection = section(
  {
    ...agentFields,
    owner: z.custom<UserId>((owner) => typeof owner === "string" && isUserId(owner), userId).optional(),
    persona: filled("the text of the persona").optional(),
  },
  refusedAgentFields,
);

/** An agent that the configuration file seeds. */
export interface ConfiguredAgent {
  readonly name: AgentName;
  readonly owner: UserId;
  /** Text of the persona file. */
  readonly persona: string | undefined;
  readonly settings: AgentSettings;
}

const budgetsBy = (isKey: (key: string) => boolean, key: string, example: string) =>
  z
    .record(
      z.string().refine((name) => name === each || isKey(name), `expected ${key}, or "${each}" for each`),
      budgetLimit(),
      `budgets such as ${example}`,
    )
    .optional();

const budgetsSection = section({
  bridge: budgetLimit().optional(),
  agents: budgetsBy(isAgentName, "an agent's name", '"*": { usd: 2 }'),
  rooms: budgetsBy(isRoomId, "a room id", '"*": { usd: 2 }'),
  requesters: budgetsBy(isUserId, "a full user id", '"@you:example.org": { usd: 2 }'),
});

const dollars = "US dollars per million tokens, 0 or more";
const perMillion = () => z.number(dollars).min(0, dollars);
const priceSection = section({
  prompt: perMillion(),
  cached: perMillion().optional(),
  completion: perMillion(),
});

const messages = "a whole number of messages per minute, 1 or more";
const wakesPerMinute = (usual: number) => z.int(messages).min(1, messages).default(usual);

const shape = section({
  homeserver: section({
    url: webUrl("http://127.0.0.1:8008"),
    serverName: z.string(serverName).refine(isServerName, serverName),
  }),
  bridge: section({
    url: webUrl("http://127.0.0.1:9009"),
    host: filled("an address to listen on, such as 127.0.0.1").default("127.0.0.1"),
    port: z.int(port).min(1, port).max(65_535, port).default(9009),
    instance: filled("a name for this process, where several share a database").optional(),
  }),
  registration: filled("the path of registration.yaml").default("registration.yaml"),
  database: databaseSection,
  model: modelSection,
  files: filesSection.prefault({}),
  media: mediaSection.prefault({}),
  permissions: z
    .record(z.string().refine(isActor, `not an actor, expected ${actor}`), z.enum(levels, level), permissions)
    .default({}),
  controlRoom: z.custom<RoomId>((room) => typeof room === "string" && isRoomId(room), roomId).optional(),
  agents: z.record(z.string().refine(isAgentName, `expected ${agentName}`), agentSection, agents).default({}),
  limits: section({
    requester: wakesPerMinute(60),
    room: wakesPerMinute(120),
  }).prefault({}),
  budgets: budgetsSection.default({}),
  prices: z
    .record(z.string(), priceSection, "prices by model, such as some/model: { prompt: 3, completion: 15 }")
    .default({}),
  logLevel: z.enum(logLevels, `one of ${logLevels.join(", ")}`).default("info"),
});

/** The shape of config.yaml, once environment and secret files are in it; paths as they are written. */
export const configSchema = shape.transform(({ agents, ...read }, context) => {
  const firstAdmin = Object.keys(read.permissions)
    .filter(isUserId)
    .find((userId) => read.permissions[userId] === "admin");
  const configured = Object.entries(agents).flatMap(
    ([name, { owner = firstAdmin, persona, ...settings }]): ConfiguredAgent[] => {
      if (owner) return [{ name: name as AgentName, owner, persona, settings }];
      const message = `${userId}, since permissions name no admin to whom it could belong`;
      context.addIssue({ code: "custom", path: ["agents", name, "owner"], message });
      return [];
    },
  );
  return { ...read, agents: configured };
});
