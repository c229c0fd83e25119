import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { AgentName, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { isAgentName, isUserId } from "../../base/lib/matrix-id.ts";
import { agentUserId } from "../../domain/agents/agent.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import { agentFields, parseAgentSettings } from "../../domain/agents/settings.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand, noInput } from "../../engine/control/define-command.ts";
import { checkLength, Definition } from "../../engine/control/definition.ts";

type Fields = Readonly<Record<string, unknown>>;

const name = z.string().describe("The agent's name, such as helper");

export const commands = [
  defineCommand({
    command: "agent list",
    topic: "agents",
    description: "Lists all agents of this bridge.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { directory, view }) {
      const lines = (await directory.all()).map((agent) => {
        const state = agent.pausedAt === null ? "" : ", paused";
        return `- **${agent.name}** (${agent.userId}): ${view.modelOf(agent)}, mode ${agent.settings.mode}, owner ${agent.owner}${state}`;
      });
      return lines.join("\n") || "There is no agent yet.";
    },
  }),
  defineCommand({
    command: "agent show",
    examples: ["helper"],
    topic: "agents",
    description: "Shows how an agent is configured, and in which rooms it is.",
    where: "control",
    level: "admin",
    input: z.object({ name }),
    async run(given, { directory, rooms }) {
      const agent = await requireAgent(directory, given.name);
      const joined = await rooms.joinedRooms(agent.userId);
      const settings = Object.entries(agent.settings).filter(([, value]) => value !== null);
      return [
        `**${agent.displayName}** (${agent.userId})`,
        `- owner: ${agent.owner}`,
        `- state: ${agent.pausedAt === null ? "at work" : `paused since ${agent.pausedAt.toISOString()}`}`,
        `- thoughts room: ${agent.thoughtsRoom ?? "none yet"}`,
        `- rooms: ${joined.map((roomId) => `\`${roomId}\``).join(", ") || "none"}`,
        "",
        "~~~json",
        JSON.stringify(Object.fromEntries(settings), undefined, 2).replaceAll("~~~", "~ ~ ~"),
        "~~~",
      ].join("\n");
    },
  }),
  defineCommand({
    command: "agent create",
    examples: ['clara --persona "You are Clara, and brief."'],
    topic: "agents",
    description: "Makes a new agent, which belongs to you. It answers invitations that it has already.",
    where: "control",
    level: "admin",
    input: z.object({
      name,
      model: z.string().optional().describe("Its model, if it is not the one of the configuration"),
      persona: z.string().optional().describe('The text of its persona, in "quotation marks"'),
    }),
    isNamedLast: true,
    async run({ name, model, persona }, { audit, directory, event, lifecycle, prefix, serverName }) {
      if (!isAgentName(name)) throw new UserError("A name has 1 to 200 characters a-z, 0-9 and . _ = + -");
      const key = event.eventId;
      const known = await audit.find(key);
      if (!known && (await directory.find(name as AgentName)))
        throw new UserError(`There is an agent ${name} already.`);
      const settings = parseAgentSettings({ ...(model !== undefined && { model }) }, `agents:/${name}/agent.json`);
      if (persona !== undefined) checkLength("persona", persona, settings);
      if (await directory.table.wasDeleted(name as AgentName)) {
        throw new UserError(
          `There was an agent ${name}, and it was deleted: the homeserver gives its user id to nobody again. Choose another name.`,
        );
      }
      const userId = agentUserId(name as AgentName, serverName);
      const change = { key, actor: event.sender, subject: `agent ${name}`, before: null, after: userId };
      const row = await audit.record(change);
      await lifecycle.create({ name: name as AgentName, owner: event.sender, persona, settings });
      return `${changeText(row)}\n\nInvite ${userId} into a room, or write to it directly. \`${prefix}agent set ${name} FIELD VALUE\` changes it.`;
    },
  }),
  defineCommand({
    command: "agent set",
    examples: ["helper mode read"],
    topic: "agents",
    description:
      "Changes a field of the agent's agent.json, its owner, or its persona; `null` puts a field back to its default. It holds when the agent wakes next.",
    where: "control",
    level: "admin",
    input: z.object({
      name,
      field: z.string().describe("A field of agent.json, such as `mode` or `models.read.name`, `owner` or `persona`"),
      value: z.string().describe("The new value: text, a number, true or false, a list with commas, or null"),
    }),
    async run({ name, field, value }, context) {
      const { audit, directory, event, lifecycle } = context;
      const agent = await requireAgent(directory, name);
      const definition = new Definition(context, agent);
      if (field === "owner") {
        if (!isUserId(value)) throw new UserError("An owner is a full user id, such as @you:example.org.");
        const change = { key: event.eventId, actor: event.sender, subject: `agent ${name}: owner`, after: value };
        const row = await audit.record({ ...change, before: agent.owner });
        await lifecycle.setOwner(agent, value as UserId);
        return changeText(row);
      }
      if (field === "persona") return changeText(await definition.setPersona(value));
      return changeText(await definition.setField(field, (fields) => withField(fields, field, value)));
    },
  }),
];

/** The fields with another value at this path; undefined takes out what is there. */
function withValueAt(fields: Fields, path: string, value: unknown): Fields {
  const [key = "", ...inner] = path.split(".");
  const before = fields[key];
  const next = inner.length === 0 ? value : withValueAt(isObject(before) ? before : {}, inner.join("."), value);
  const { [key]: _, ...others } = fields;
  return next === undefined ? others : { ...fields, [key]: next };
}

/** The fields with this one set to what the text means, whether or not it can be used. */
function withField(fields: Fields, field: string, text: string): Fields {
  const [key = ""] = field.split(".");
  const schema = Object.entries(agentFields).find(([name]) => name === key)?.[1];
  const [first = fields, ...others] = (text === "null" ? [null] : readingsOf(text)).map((value) =>
    withValueAt(fields, field, value),
  );
  const fits = [first, ...others].find((reading) => schema?.safeParse(reading[key]).success);
  const isKnown = schema !== undefined || key in fields;
  return text === "null" && fits === undefined && isKnown ? withValueAt(fields, field, undefined) : (fits ?? first);
}

const readingsOf = (text: string): unknown[] =>
  [asJson(text), text, text.split(",").map((part) => part.trim())].filter((reading) => reading !== undefined);

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
