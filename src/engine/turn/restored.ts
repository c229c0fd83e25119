import { HOME, type UserId } from "../../base/lib/ids.ts";
import type { Turn } from "../../domain/tables/turns.ts";
import type { Mind } from "./mind.ts";

/**
 * Tells if people have the answer of a turn that stands open: the database is an older copy, and the turn went on after
 * it was made. The homeserver is asked for what was said since.
 * @throws RetryError where it does not answer
 */
export async function wasAnswered(
  { turns, readMissed }: Pick<Mind, "turns" | "readMissed">,
  turn: Turn,
  userId: UserId,
): Promise<boolean> {
  if (turn.roomId === HOME) return false;
  await readMissed(userId, turn.roomId);
  return turns.hasUnknownAnswer(turn, userId);
}
