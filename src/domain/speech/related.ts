import { readMessage } from "../../adapters/matrix/message.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Events, StoredEvent } from "../tables/events.ts";

type Known = Pick<Events, "find" | "findNumbered">;

/** A message that another event is to relate to. */
interface Related {
  readonly eventId: EventId;
  /** Root of the thread in which it stands; the event itself where it stands in none. */
  readonly root: EventId;
}

/**
 * Finds the message that a call names for what it says to relate to, by its number or its id.
 * @throws UserError for whatever names no message of the room that can be read
 */
export async function findRelated(roomId: RoomId, named: string, events: Known): Promise<Related> {
  const event = await eventNamed(roomId, named, events);
  // A redacted event has no content any more.
  if (event?.roomId !== roomId || !isMessage(event.type) || Object.keys(event.content).length === 0)
    throw new UserError(`There is no message ${named} in the room ${roomId}: take the id of one that you see there.`);
  return { eventId: event.eventId, root: readMessage(event)?.threadId ?? event.eventId };
}

const isMessage = (type: string): boolean => type === "m.room.message" || type === "m.sticker";

async function eventNamed(roomId: RoomId, named: string, events: Known): Promise<StoredEvent | undefined> {
  const [, digits] = /^#?(\d{1,15})$/.exec(named) ?? [];
  if (digits !== undefined) return events.findNumbered(roomId, Number(digits));
  return /^\$.{1,254}$/.test(named) ? events.find(named as EventId) : undefined;
}
