import { z } from "zod";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";
import { isAgentName, isRoomId, isServerName, isUserId } from "../../base/lib/matrix-id.ts";
import { section } from "../../base/lib/problems.ts";
import { modelsSection } from "../../domain/agents/models.ts";
import {
  type AgentSettings,
  agentFields,
  budgetLimit,
  refusedAgentFields,
  refuseMute,
} from "../../domain/agents/settings.ts";
import { each } from "../../domain/budget/book.ts";
import { isActor, levels } from "../../domain/rights/permissions.ts";
import { embeddingsSection } from "./embeddings.ts";
import { sandboxSection } from "./sandbox.ts";
import { serversSection } from "./servers.ts";
import { apiKey, filled, webUrl } from "./values.ts";
import { webSection } from "./web.ts";

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

const modelSection = section(
  {
    baseUrl: webUrl("https://openrouter.ai/api/v1")
      .default("https://openrouter.ai/api/v1")
      .describe("Address of the service."),
    apiKey: apiKey().optional().describe("Key for the service, if it asks for one."),
    name: filled("the name of a model, such as anthropic/claude-sonnet-4.5").describe(
      "Model of all agents that name none.",
    ),
  },
  { submodel: "submodel has another place now: write models: { read: { name: … } }, beside model" },
);

const databaseSection = section({
  dir: filled("a folder, such as data")
    .optional()
    .describe("Folder of the embedded database. It needs nothing else, and is for one process."),
  url: z
    .string(postgresUrl)
    .refine((url) => /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url), postgresUrl)
    .optional()
    .describe("A PostgreSQL server instead, version 16 or newer with pgvector 0.8 or newer."),
}).superRefine(({ dir, url }, context) => {
  if ((dir === undefined) !== (url === undefined)) return;
  const message = `exactly one of dir (a folder for the embedded database) and url or urlFile (${postgresUrl})`;
  context.addIssue({ code: "custom", path: ["url"], message });
});

const fileMegabytes = "a whole number of megabytes from 1 to 16";
const mediaSection = section({
  maxMegabytes: z
    .int(fileMegabytes)
    .min(1, fileMegabytes)
    .max(16, fileMegabytes)
    .default(16)
    .describe("Largest file that is kept."),
});

const rankings = ["product", "seed"] as const;
const pastMessages = "a whole number of messages from 0 to 10000";
const pastDays = "a whole number of days, 1 or more";
const memorySection = section({
  historyMessages: z
    .int(pastMessages)
    .min(0, pastMessages)
    .max(10_000, pastMessages)
    .default(1_000)
    .describe(
      "Messages of a room from before an agent joined it that are read into its memory, as far as it may read them: in the background, 100 per second at most. The newest 50 are read in any case.",
    ),
  historyDays: z
    .int(pastDays)
    .min(1, pastDays)
    .default(365)
    .describe("Age, in days, of the oldest messages that are read into memory when an agent joins a room."),
  ranking: z
    .enum(rankings, `one of ${rankings.join(", ")}`)
    .default("product")
    .describe(
      "Order of what is recalled. `product`: by how well it fits, and a little by its importance; `seed`: among the 20 that fit best, importance counts 30 %.",
    ),
});

const devices = "a whole number of devices, 1 or more";
const encryptionSection = section({
  maxOpenDevices: z
    .int(devices)
    .min(1, devices)
    .default(200)
    .describe(
      "Most devices of agents that are in memory at the same time, in one process: about 100 kB each. The one that was not used for the longest time is closed, and opened again when it is needed.",
    ),
});

const megabytes = "a whole number of megabytes, 1 or more";
const filesSection = section({
  quotaMegabytes: z
    .int(megabytes)
    .min(1, megabytes)
    .default(256)
    .describe("Most that the files of one agent, one user or one room may take together. One file may have 16 MB."),
});

const agentSection = section(
  {
    ...agentFields,
    owner: z
      .custom<UserId>((owner) => typeof owner === "string" && isUserId(owner), userId)
      .optional()
      .describe("Person to whom the agent belongs. Without it: the first admin in `permissions`."),
    persona: filled("the text of the persona")
      .optional()
      .describe(
        "Text of its persona file, where it has none yet. Without it: one with traits, capabilities and guidelines.",
      ),
  },
  refusedAgentFields,
).superRefine(refuseMute);

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
  bridge: budgetLimit().optional().describe("Limit for all agents together."),
  agents: budgetsBy(isAgentName, "an agent's name", '"*": { usd: 2 }').describe("Limits for agents, by name."),
  rooms: budgetsBy(isRoomId, "a room id", '"*": { usd: 2 }').describe("Limits for rooms, by room id."),
  requesters: budgetsBy(isUserId, "a full user id", '"@you:example.org": { usd: 2 }').describe(
    "Limits for people, by user id: what agents spend on their behalf.",
  ),
});

const dollars = "US dollars per million tokens, 0 or more";
const perMillion = () => z.number(dollars).min(0, dollars);
const priceSection = section({
  prompt: perMillion().describe("What the model reads."),
  cached: perMillion()
    .optional()
    .describe("What the provider still has from an earlier call. Without it: as `prompt`."),
  completion: perMillion().describe("What the model writes."),
});

const messages = "a whole number of messages per minute, 1 or more";
const wakesPerMinute = (usual: number) => z.int(messages).min(1, messages).default(usual);

/** Every key of config.yaml, with its explanation for people (docs/configuration.md). */
export const configKeys = {
  homeserver: section({
    url: webUrl("http://127.0.0.1:8008").describe("Where we reach it."),
    serverName: z
      .string(serverName)
      .refine(isServerName, serverName)
      .describe("Its name, which user ids and room ids end with."),
  }).describe("The Synapse homeserver."),
  bridge: section({
    url: webUrl("http://127.0.0.1:9009").describe("Where the homeserver reaches us; the same as in registration.yaml."),
    host: filled("an address to listen on, such as 127.0.0.1")
      .default("127.0.0.1")
      .describe("Address on which we listen. 0.0.0.0 is every address of this machine."),
    port: z.int(port).min(1, port).max(65_535, port).default(9009).describe("Port on which we listen."),
    instance: filled("a name for this process, where several share a database")
      .optional()
      .describe(
        "Name of this process among those that share a database; it must be the same after each start. Without it: host name and port.",
      ),
  }).describe("This program."),
  registration: filled("the path of registration.yaml")
    .default("registration.yaml")
    .describe("File that the homeserver reads as well: it holds the secrets between the two."),
  database: databaseSection.describe("Where everything is kept: either `dir` or `url`."),
  model: modelSection.describe("The language model: any service that speaks the OpenAI protocol with tool calls."),
  models: modelsSection
    .default({})
    .describe(
      "Models of that service for kinds of tasks, and what is set of them, for all agents that choose none of a kind.",
    ),
  embeddings: embeddingsSection
    .prefault({})
    .describe(
      "How memory is searched by meaning, beside its words. Texts are compared as vectors, which a model makes of them.",
    ),
  sandbox: sandboxSection
    .prefault({})
    .describe(
      "Computers of conversations: containers in which agents run commands, behind walls of their own. They need Podman, and an image that `clevernet sandbox build` makes; `clevernet check` looks at both.",
    ),
  web: webSection
    .prefault({})
    .describe(
      "How agents open pages and search the web. Whatever they ask for, only public addresses are reached, on the ports 80 and 443.",
    ),
  mcp: serversSection
    .default({})
    .describe("Servers of tools (MCP), by name. An agent has the tools of those that `mcp` of its `agent.json` names."),
  files: filesSection.prefault({}).describe("Files of agents, people and rooms."),
  memory: memorySection.prefault({}).describe("What agents remember."),
  media: mediaSection.prefault({}).describe("Images, voice messages and other files that people send in rooms."),
  encryption: encryptionSection.prefault({}).describe("Encrypted rooms. They need no setting."),
  permissions: z
    .record(z.string().refine(isActor, `not an actor, expected ${actor}`), z.enum(levels, level), permissions)
    .default({})
    .describe(
      'Who may do what, as `WHO: LEVEL`. Levels, each including the one before: `none`, `chat` (talk to agents), `use` (commands that read), `operate` (all commands, approvals), `admin` (the bridge itself). WHO is a user id, a pattern such as `"@*:example.org"`, a homeserver, or a room id, whose members are meant. The most specific rule counts. A person whom no rule names may do nothing; one who is named with `none` is ignored besides. `!permission` in the control room changes it.',
    ),
  controlRoom: z
    .custom<RoomId>((room) => typeof room === "string" && isRoomId(room), roomId)
    .optional()
    .describe(
      "Room in which admins command the bridge and hear of trouble. Without it the bot makes one for the first admin who invites it or writes to it.",
    ),
  agents: z
    .record(z.string().refine(isAgentName, `expected ${agentName}`), agentSection, agents)
    .default({})
    .describe(
      "Agents to begin with, by name: `helper` is `@agent_helper:SERVER`. They are made once. Afterwards `agents:/helper/agent.json` configures them, which has these same fields.",
    ),
  limits: section({
    requester: wakesPerMinute(60).describe("Messages of one person, in all rooms together; as many commands besides."),
    room: wakesPerMinute(120).describe("Messages in one room, of all people together."),
  })
    .prefault({})
    .describe(
      "Messages per minute that wake agents. More are read as history, and are not answered; the sender is told so once.",
    ),
  budgets: budgetsSection
    .default({})
    .describe(
      'Most that may be spent on one day (UTC), as tokens, US dollars or both. The name `"*"` is for each one that is not named. `!budget` changes it. Without budgets there is no limit.',
    ),
  prices: z
    .record(z.string(), priceSection, "prices by model, such as some/model: { prompt: 3, completion: 15 }")
    .default({})
    .describe("US dollars per million tokens, by model, for providers that do not say what a call has cost."),
  logLevel: z
    .enum(logLevels, `one of ${logLevels.join(", ")}`)
    .default("info")
    .describe("How much is logged. `debug` tells of each turn and call; `trace` also what was said in them."),
};

/** The shape of config.yaml, once environment and secret files are in it; paths as they are written. */
export const configSchema = section(configKeys).transform(({ agents, ...read }, context) => {
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
