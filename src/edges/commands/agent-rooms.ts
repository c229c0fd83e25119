import { z } from "zod";
import { HomeserverError } from "../../adapters/matrix/client.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { isRoomId } from "../../base/lib/matrix-id.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import { changeText } from "../../engine/control/change.ts";
import { type CommandContext, defineCommand } from "../../engine/control/define-command.ts";

const input = z.object({
  name: z.string().describe("The agent's name, such as helper"),
  room: z
    .string()
    .refine(isRoomId, "a room id such as !id:example.org")
    .describe("The room's id; clients show it among the room's advanced settings"),
});

/** Reads an agent's membership in a room. */
async function readStanding(name: string, room: string, { directory, rooms }: CommandContext) {
  const agent = await requireAgent(directory, name);
  const roomId = room as RoomId;
  const before = (await rooms.membership(roomId, agent.userId)) ?? "not there";
  return { agent, roomId, before, subject: `agent ${name} in ${room}` };
}

export const commands = [
  defineCommand({
    command: "agent invite",
    examples: ["helper !lounge:example.org"],
    topic: "agents",
    description: "Lets the agent enter a room that is public, or in which the bot may invite.",
    where: "control",
    level: "admin",
    input,
    async run({ name, room }, context) {
      const { audit, client, event } = context;
      const { agent, roomId, before, subject } = await readStanding(name, room, context);
      const row = await audit.record({ key: event.eventId, actor: event.sender, subject, before, after: "invited" });
      if (before === "join") return changeText({ ...row, after: before });
      const hasEntered = await client.join({ userId: agent.userId }, roomId).then(() => true, unlessRefused);
      if (
        !hasEntered &&
        !(await client.invite({ userId: client.botUserId }, roomId, agent.userId).then(() => true, unlessRefused))
      ) {
        throw new UserError(
          `${name} cannot enter ${room} by itself, and I cannot invite it. Somebody in that room can: invite ${agent.userId}, or invite me (${client.botUserId}) and let me invite.`,
        );
      }
      return changeText(row);
    },
  }),
  defineCommand({
    command: "agent leave",
    examples: ["helper !abc:example.org"],
    topic: "agents",
    description: "Makes the agent leave a room.",
    where: "control",
    level: "admin",
    input,
    async run({ name, room }, context) {
      const { audit, client, event } = context;
      const { agent, roomId, before, subject } = await readStanding(name, room, context);
      if (before !== "join" && before !== "invite" && !(await audit.find(event.eventId)))
        throw new UserError(`${name} is not in ${room}.`);
      const row = await audit.record({ key: event.eventId, actor: event.sender, subject, before, after: "leave" });
      await client.leave({ userId: agent.userId }, roomId, `Asked to by ${event.sender}.`).catch(unlessRefused);
      return changeText(row);
    },
  }),
];

function unlessRefused(error: unknown): false {
  if (error instanceof HomeserverError && error.isFinal) return false;
  throw error;
}
