import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { AgentName, UserId } from "../../base/lib/ids.ts";
import { isAgentName, isUserId } from "../../base/lib/matrix-id.ts";
import { agentUserId } from "../../domain/agents/agent.ts";
import { agentNamed } from "../../domain/agents/agent-named.ts";
import { parseAgentSettings } from "../../domain/agents/settings.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand, noInput } from "../../engine/control/define-command.ts";

const name = z.string().describe("The agent's name, such as helper");

export const commands = [
  defineCommand({
    command: "agent list",
    topic: "agents",
    description: "All agents of this bridge.",
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
    description: "How an agent is configured, and where it is.",
    where: "control",
    level: "admin",
    input: z.object({ name }),
    async run(given, { directory, rooms }) {
      const agent = await agentNamed(directory, given.name);
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
    description: "Makes a new agent, which is yours. Invitations that it has already are answered.",
    where: "control",
    level: "admin",
    input: z.object({
      name,
      model: z.string().optional().describe("Its model, if it is not the one of the configuration"),
      persona: z.string().optional().describe('The text of its persona, in "quotation marks"'),
    }),
    namedLast: true,
    async run({ name, model, persona }, { audit, directory, event, lifecycle, prefix, serverName }) {
      if (!isAgentName(name)) throw new UserError("A name has 1 to 200 characters a-z, 0-9 and . _ = + -");
      const key = event.eventId;
      const known = await audit.find(key);
      if (!known && (await directory.find(name as AgentName)))
        throw new UserError(`There is an agent ${name} already.`);
      const settings = parseAgentSettings({ ...(model !== undefined && { model }) }, `agents:/${name}/agent.json`);
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
      "Changes a field of the agent's agent.json, its owner, or its persona; `null` puts a field back. In force when it wakes next.",
    where: "control",
    level: "admin",
    input: z.object({
      name,
      field: z.string().describe("A field of agent.json, `owner` or `persona`"),
      value: z.string().describe("The new value: text, a number, true or false, a list with commas, or null"),
    }),
    async run({ name, field, value }, { audit, directory, event, lifecycle }) {
      const agent = await agentNamed(directory, name);
      const change = { key: event.eventId, actor: event.sender, subject: `agent ${name}: ${field}`, after: value };
      if (field === "owner") {
        if (!isUserId(value)) throw new UserError("An owner is a full user id, such as @you:example.org.");
        const row = await audit.record({ ...change, before: agent.owner });
        await lifecycle.setOwner(agent, value as UserId);
        return changeText(row);
      }
      if (field === "persona") {
        const row = await audit.record({ ...change, before: (await directory.persona(agent)) ?? null });
        await directory.writePersona(agent, value);
        return changeText(row);
      }
      const fields = await directory.fields(agent.name);
      const changed = withField(fields, field, value, `agents:/${name}/agent.json`);
      const [before, after] = [textOf(fields[field]), textOf(changed[field])];
      const row = await audit.record({ ...change, before, after });
      await lifecycle.configure(agent, changed);
      return changeText(row);
    },
  }),
];

const textOf = (value: unknown): string =>
  value === undefined ? "the default" : typeof value === "string" ? value : JSON.stringify(value);

/** The fields with this one set to what the text means; a `UserError` names what is wrong with it. */
function withField(
  fields: Readonly<Record<string, unknown>>,
  field: string,
  text: string,
  where: string,
): Readonly<Record<string, unknown>> {
  const readings = text === "null" ? [null] : readingsOf(text);
  let refusal: unknown;
  for (const reading of readings) {
    const changed = { ...fields, [field]: reading };
    try {
      parseAgentSettings(changed, where);
      return changed;
    } catch (error) {
      refusal ??= error;
    }
  }
  if (text !== "null") throw refusal;
  const { [field]: _, ...rest } = fields;
  parseAgentSettings(rest, where);
  return rest;
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
