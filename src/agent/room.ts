import { eventTime } from "../context/time.ts";
import { UserError } from "../lib/errors.ts";
import { type EventId, HOME, type RoomId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { type Element, element } from "../lmml/element.ts";
import type { ThreadPlace } from "../matrix/relation.ts";
import type { ToolContext } from "./tool.ts";

/** The room in which a call speaks: the one it names, or the conversation's own. Throws a `UserError` where it cannot. */
export async function roomToSpeakIn(named: string | undefined, context: ToolContext) {
  const { agent, roomId: here, rooms, speaksHere } = context;
  const roomId = (named ?? here) as RoomId;
  if (roomId === HOME) throw new UserError("Name the room to speak in: there is no room here.");
  if (roomId === here && speaksHere) return roomId;
  const { agents, state } = await rooms.context(roomId);
  if (!agents.some(({ userId, membership }) => userId === agent.userId && membership === "join")) {
    throw new UserError(`You are not in the room ${roomId}. Speak in one of the rooms that you are shown.`);
  }
  if (state["m.room.encryption"]) throw new UserError(`The room ${roomId} is encrypted: you cannot speak there.`);
  return roomId;
}

/** The thread in which a call speaks: the one it names; in the conversation's own room, that of the conversation. */
export const threadToSpeakIn = (
  named: string | undefined,
  roomId: RoomId,
  context: Pick<ToolContext, "roomId" | "thread">,
): ThreadPlace | undefined => {
  const own = roomId === context.roomId ? context.thread : undefined;
  if (named === undefined || named === own?.root) return own;
  return { root: named as EventId, latest: named as EventId };
};

/** What a call is told of the message that it sends. `fields` stand behind the sender, in their order. */
export const sentMessage = (
  { agent, now }: Pick<ToolContext, "agent" | "now">,
  roomId: RoomId,
  fields: { readonly messageType: string } & Element["attributes"],
  text: string,
): Element =>
  element(
    "message",
    {
      systemId: splitUserId(agent.userId).server,
      roomId,
      timestamp: eventTime(now),
      sender: agent.userId,
      ...fields,
      sent: true,
    },
    text,
  );
