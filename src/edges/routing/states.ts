import type { Database } from "../../adapters/database/connection.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { PendingEvent } from "../../domain/tables/events.ts";
import { type Projected, type Projection, settleProjections } from "../../domain/tables/projection.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Judge } from "./judge.ts";
import { isPlainState } from "./project.ts";
import { isPassing } from "./set-aside.ts";

/** Of fewer events each is routed for itself. */
const fewest = 2;

/**
 * Routes in one statement what stands at the beginning of the waiting events of a room and only changes what is known of
 * it: a thousand joins hold a room up no longer than ten messages. Returns how many events that were; 0 where the first
 * is to be routed for itself, also because one of them cannot be routed.
 */
export async function routeStates(
  database: Database,
  judge: Judge,
  waiting: readonly PendingEvent[],
  room: RoomContext,
): Promise<number> {
  const [first] = waiting;
  if (!first || !isPlainState(first, judge.kindOf)) return 0;
  try {
    const states = await statesOf(judge, waiting, room);
    if (states.length < fewest) return 0;
    await settleProjections(database, first.roomId, states);
    return states.length;
  } catch (error) {
    if (isPassing(error)) throw error;
    return 0;
  }
}

/** As many as change something else each. */
async function statesOf(judge: Judge, waiting: readonly PendingEvent[], room: RoomContext): Promise<Projected[]> {
  const changed = new Set<string>();
  const states: Projected[] = [];
  for (const event of waiting) {
    if (!isPlainState(event, judge.kindOf)) break;
    const effects = onlyProjection(await judge.judge(event, room));
    const change = effects?.member?.userId ?? effects?.state?.type;
    if (!effects || (change !== undefined && changed.has(change))) break;
    if (change !== undefined) changed.add(change);
    states.push({ event, effects });
  }
  return states;
}

/** Undefined where anything else follows from the event. */
function onlyProjection({ shownChars, member, state, ...others }: Effects): Projection | undefined {
  const isNothing = (effect: unknown) => effect === undefined || (Array.isArray(effect) && effect.length === 0);
  if (!Object.values(others).every(isNothing)) return undefined;
  return { ...(shownChars !== undefined && { shownChars }), ...(member && { member }), ...(state && { state }) };
}
