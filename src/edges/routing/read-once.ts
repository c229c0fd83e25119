import { HomeserverError } from "../../adapters/matrix/client.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

type Read = (userId: UserId, roomId: RoomId) => Promise<void>;

/**
 * Reads each room once for each user. Whoever may not read there any more has missed nothing.
 * @throws RetryError where the homeserver does not answer; the next call reads again
 */
export function readOnce(read: Read): Read {
  const readings = new Map<string, Promise<void>>();
  return (userId, roomId) => {
    const key = `${userId} ${roomId}`;
    const known = readings.get(key);
    if (known) return known;
    const reading = read(userId, roomId).catch((error: unknown) => {
      if (error instanceof HomeserverError && error.final) return;
      readings.delete(key);
      if (!(error instanceof HomeserverError)) throw error;
      throw new RetryError(`what was said in the room cannot be read: ${messageOf(error)}`, { cause: error });
    });
    readings.set(key, reading);
    return reading;
  };
}
