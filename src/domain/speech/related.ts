import { readMessage } from "../../adapters/matrix/message.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Events } from "../tables/events.ts";

/** An event that a message is to relate to. */
interface Related {
  readonly eventId: EventId;
  /** Root of the thread in which it stands; the event itself where it stands in none. */
  readonly root: EventId;
}

/**
 * Finds the event that a call names for its message to relate to. An event that is older than what we know is taken as
 * it is named: the homeserver decides.
 * @throws UserError for what is no event's id, and for an event of another room
 */
export async function relatedIn(roomId: RoomId, named: string, events: Pick<Events, "find">): Promise<Related> {
  const mistake = new UserError(
    `There is no message ${named} in the room ${roomId}: take the eventId of one that you see.`,
  );
  if (!/^\$.{1,254}$/.test(named)) throw mistake;
  const eventId = named as EventId;
  const event = await events.find(eventId);
  if (event && event.roomId !== roomId) throw mistake;
  return { eventId, root: (event && readMessage(event)?.threadId) ?? eventId };
}
