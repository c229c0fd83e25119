import { readMessage } from "../../adapters/matrix/message.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Events, StoredEvent } from "../tables/events.ts";

type Known = Pick<Events, "find" | "findNumbered">;

/** An event that a message is to relate to. */
interface Related {
  readonly eventId: EventId;
  /** Root of the thread in which it stands; the event itself where it stands in none. */
  readonly root: EventId;
}

/**
 * Finds the event that a call names for its message to relate to, by its number or its id. An id that is older than what
 * we know is taken as it is: the homeserver decides.
 * @throws UserError for what names no event, and for an event of another room
 */
export async function findRelated(roomId: RoomId, named: string, events: Known): Promise<Related> {
  const event = await eventIn(roomId, named, events);
  const eventId = event?.eventId ?? (named as EventId);
  return { eventId, root: (event && readMessage(event)?.threadId) ?? eventId };
}

/** The event of the room with this number or id; undefined where nothing is known of an id. */
export async function eventIn(roomId: RoomId, named: string, events: Known): Promise<StoredEvent | undefined> {
  const [, digits] = /^#?(\d{1,15})$/.exec(named) ?? [];
  if (digits === undefined && !/^\$.{1,254}$/.test(named)) throw noMessage(roomId, named);
  const event = await (digits === undefined
    ? events.find(named as EventId)
    : events.findNumbered(roomId, Number(digits)));
  if (event ? event.roomId !== roomId : digits !== undefined) throw noMessage(roomId, named);
  return event;
}

export const noMessage = (roomId: RoomId, named: string): UserError =>
  new UserError(`There is no message ${named} in the room ${roomId}: take the id of one that you see there.`);
