import { HomeserverError } from "../../adapters/matrix/client.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";

/**
 * Reads once for each combination of the parameters: a user, and a room where it is read alone. Whoever may not read
 * there any more has missed nothing.
 * @throws RetryError where the homeserver does not answer; the next call reads again
 */
export function readOnce<Keys extends readonly string[]>(
  read: (...keys: Keys) => Promise<void>,
): (...keys: Keys) => Promise<void> {
  const readings = new Map<string, Promise<void>>();
  return (...keys) => {
    const key = keys.join(" ");
    const known = readings.get(key);
    if (known) return known;
    const reading = read(...keys).catch((error: unknown) => {
      if (error instanceof HomeserverError && error.isFinal) return;
      readings.delete(key);
      if (!(error instanceof HomeserverError)) throw error;
      throw new RetryError(`what was said in the room cannot be read: ${messageOf(error)}`, { cause: error });
    });
    readings.set(key, reading);
    return reading;
  };
}
