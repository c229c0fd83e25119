import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { type AgentName, digest, HOME, type RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { element } from "../../base/lmml/element.ts";
import { toStored } from "../../base/prompt/stored.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { includesLevel } from "../rights/permissions.ts";
import type { Rights } from "../rights/rights.ts";
import { utter } from "../speech/utter.ts";
import type { WakeDraft } from "../tables/effects.ts";
import type { OutboxDraft } from "../tables/outbox.ts";
import {
  type DueSchedule,
  type Schedule,
  type ScheduleDraft,
  type ScheduleTable,
  schedulesMax,
} from "../tables/schedules.ts";
import type { Seat } from "../tables/windows.ts";
import { nextTime } from "./when.ts";

interface ScheduleParts {
  readonly table: ScheduleTable;
  readonly rights: Pick<Rights, "of">;
  readonly clock: Clock;
  readonly log: Log;
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** Said in the control room, once for a key. */
  readonly tellOperators: (text: string, key: string) => void;
}

/** Time between two looks for schedules of other processes, and for those that could not be carried out. */
const lookEveryMs = 30_000;

/**
 * Wakes agents when what was scheduled is due: once, whichever process is alive, and once for all the times that went
 * by while none was. Whoever made a schedule must still be allowed to talk to agents, and must not have left the room.
 */
export class Schedules {
  readonly #parts: ScheduleParts;
  readonly #stopped = new AbortController();
  #planned = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  find(key: string): Promise<Schedule | undefined> {
    return this.#parts.table.find(key);
  }

  /** @throws UserError where the agent has as many as it may */
  async add(draft: ScheduleDraft): Promise<Schedule> {
    const added = await this.#parts.table.add(draft);
    this.#planned.resolve();
    if (added) return added;
    throw new UserError(`${draft.agent} has ${schedulesMax} schedules already. Remove one first.`);
  }

  /** See `ScheduleTable`. */
  list(seat: Pick<Seat, "agent" | "owner" | "here">): Promise<Schedule[]> {
    return this.#parts.table.list(seat);
  }

  remove(agent: AgentName, id: number): Promise<boolean> {
    return this.#parts.table.remove(agent, id);
  }

  start(): void {
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#planned.resolve();
    await this.#running;
  }

  /** Rings what is due. Returns in how many milliseconds to look again. */
  async ring(): Promise<number> {
    const { now, due, nextInMs } = await this.#parts.table.due();
    for (const schedule of due) {
      await this.#ringOne(schedule, now).catch((error: unknown) =>
        this.#parts.log.warn(`schedule ${schedule.id} of ${schedule.agent}: ${messageOf(error)}`),
      );
    }
    return Math.min(lookEveryMs, nextInMs ?? lookEveryMs);
  }

  async #repeat(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      this.#planned = Promise.withResolvers();
      const wait = await this.ring().catch((error: unknown) => {
        log.warn(`looking for what is scheduled: ${messageOf(error)}`);
        return lookEveryMs;
      });
      const over = new AbortController();
      const sleeping = clock.sleep(wait, AbortSignal.any([over.signal, this.#stopped.signal])).catch(() => {});
      await Promise.race([sleeping, this.#planned.promise]);
      over.abort();
    }
  }

  async #ringOne(schedule: DueSchedule, now: Date): Promise<void> {
    const { table, onWoken } = this.#parts;
    const why = await this.#whyNot(schedule);
    if (why !== undefined) return this.#end(schedule, why);
    const { cron, timeZone } = schedule;
    onWoken(await table.ring(schedule, cron === null ? null : nextTime(cron, timeZone, now), wakeOf(schedule)));
  }

  async #whyNot({ isAgentHere, madeBy, isMakerGone }: DueSchedule): Promise<string | undefined> {
    if (!isAgentHere) return "I am not in its room any more";
    if (isMakerGone) return `${madeBy} has left this room`;
    return includesLevel(await this.#parts.rights.of(madeBy), "chat")
      ? undefined
      : `${madeBy} may not talk to me any more`;
  }

  /** People are told in the room, and operators: somebody may have counted on it. */
  async #end(schedule: DueSchedule, why: string): Promise<void> {
    const { onOutbox, table, tellOperators } = this.#parts;
    const { isAgentHere, id, madeBy, roomId, userId } = schedule;
    const key = digest("schedule ended", schedule.key);
    const text = `Schedule ${id}, made by ${madeBy}, has ended: ${why}.`;
    const notice: OutboxDraft[] =
      isAgentHere && roomId !== HOME ? utter({ sender: userId, roomId, text, isNotice: true, key }) : [];
    if (!(await table.end(schedule, notice))) return;
    onOutbox(notice.map((draft) => draft.roomId));
    tellOperators(`${userId}: ${text}`, key);
  }
}

/** With this begins the chain of a turn that a schedule began. */
export const ringChain = "schedule:";

function wakeOf({ agent, id, madeBy, nextAt, place, roomId, sources, taint, text }: DueSchedule): WakeDraft {
  const key = `${ringChain}${id}:${nextAt.toISOString()}`;
  const isTainted = taint.length > 0;
  // The agent is told where it works now: nothing new in the room says so.
  const where = roomId === HOME ? {} : { roomId };
  const attributes = { timestamp: eventTime(nextAt), schedule: id, madeBy, ...where, tainted: isTainted };
  const note = element("systemEvent", attributes, text);
  return {
    key,
    agent,
    roomId,
    reason: "schedule",
    requester: madeBy,
    chain: key,
    note: toStored(note),
    sources,
    taint,
    place,
  };
}
