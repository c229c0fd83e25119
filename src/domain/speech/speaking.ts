import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { type EventId, HOME, type RoomId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { type Element, element } from "../../base/lmml/element.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { Agent } from "../agents/agent.ts";
import type { Rooms } from "../tables/rooms.ts";

/** A call that speaks: the conversation that it is made in. */
export interface Speaker {
  readonly agent: Agent;
  /** The conversation's room. */
  readonly roomId: RoomId;
  /** The thread in which the conversation stands, if it stands in one. */
  readonly thread: ThreadPlace | undefined;
  readonly now: Date;
  readonly rooms: Rooms;
}

/** The room in which a call speaks: the one it names, or the conversation's own. Throws a `UserError` where it cannot. */
export async function roomToSpeakIn(
  named: string | undefined,
  { agent, roomId: here, rooms }: Pick<Speaker, "agent" | "roomId" | "rooms">,
) {
  const roomId = (named ?? here) as RoomId;
  if (roomId === HOME) throw new UserError("Name the room to speak in: there is no room here.");
  const obstacle = await findObstacle(roomId, agent, rooms);
  if (obstacle === "absent")
    throw new UserError(`You are not in the room ${roomId}. Speak in one of the rooms that you are shown.`);
  if (obstacle === "encrypted")
    throw new UserError(`The room ${roomId} is encrypted in an unknown way: you cannot speak there.`);
  return roomId;
}

/** Names what keeps an agent from speaking in a room now: much may have come since it was shown the room. */
export async function findObstacle(
  roomId: RoomId,
  agent: Agent,
  rooms: Pick<Rooms, "context" | "isUnwritable">,
): Promise<"absent" | "encrypted" | undefined> {
  const [{ agents }, isUnwritable] = await Promise.all([rooms.context(roomId), rooms.isUnwritable(roomId)]);
  const isThere = agents.some(({ userId, membership }) => userId === agent.userId && membership === "join");
  if (!isThere) return "absent";
  return isUnwritable ? "encrypted" : undefined;
}

/** The thread in which a call speaks: the one it names; in the conversation's own room, that of the conversation. */
export const threadToSpeakIn = (
  named: string | undefined,
  roomId: RoomId,
  context: Pick<Speaker, "roomId" | "thread">,
): ThreadPlace | undefined => {
  const own = roomId === context.roomId ? context.thread : undefined;
  if (named === undefined || named === own?.root) return own;
  return { root: named as EventId, latest: named as EventId };
};

/** Describes a sent message to the call that sent it. `fields` stand behind the sender, in their order. */
export const sentMessage = (
  { agent, now }: Pick<Speaker, "agent" | "now">,
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
