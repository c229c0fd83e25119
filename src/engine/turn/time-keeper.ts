import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { WakeDraft } from "../../domain/tables/effects.ts";
import type { IdleConversations, Tidier } from "../../domain/tables/idle-conversations.ts";
import { type DueSilence, type SilenceTable, waitMost } from "../../domain/tables/silences.ts";
import type { Lull, Observation, Sensor } from "../operations/sensor.ts";

export interface TimeKeeperParts {
  readonly silences: SilenceTable;
  readonly idle: IdleConversations;
  readonly sensors: readonly Sensor[];
  readonly directory: Pick<AgentDirectory, "find">;
  readonly rights: Pick<Rights, "of">;
  readonly clock: Clock;
  readonly log: Log;
  /** See `Mind`. */
  readonly readMissed: (userId: UserId, roomId: RoomId) => Promise<void>;
  readonly onWoken: (conversations: readonly Conversation[]) => void;
}

/** Time between two looks. */
const lookEveryMs = 30_000;
/** Of so many looks, one is also for conversations in which nothing has happened for long. */
const looksPerTidying = 10;

/**
 * Wakes agents because time has passed: for a silence after something that they have left open, and to tidy their memory.
 * Rows and the database's clock say when; whichever process asks first wakes.
 */
export class TimeKeeper {
  readonly #parts: TimeKeeperParts;
  readonly #stopped = new AbortController();
  #looks = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: TimeKeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** Wakes agents for silences that have lasted long enough. Returns in how many milliseconds to look again. */
  async ring(): Promise<number> {
    const { due, nextInMs } = await this.#parts.silences.due();
    for (const silence of due) await this.#safely(this.#ringOne(silence), `the silence in ${silence.roomId}`);
    return Math.min(lookEveryMs, nextInMs ?? lookEveryMs);
  }

  /** Wakes agents that may tidy their memory now. */
  async tidy(): Promise<void> {
    const { clock, directory, idle, onWoken } = this.#parts;
    const tidiers: Tidier[] = [];
    for (const name of await idle.findCandidates()) {
      const agent = await directory.find(name);
      const settings = agent?.settings.defaultMode;
      const noticed = agent && settings ? this.#ask({ agent, at: clock.now(), open: undefined }) : undefined;
      if (!settings || !noticed?.note) continue;
      const { afterSeconds, budget } = settings;
      const limits = { tokens: budget.tokens ?? null, usd: budget.usd ?? null };
      tidiers.push({ agent: name, afterSeconds, ...limits, note: toStored(noticed.note) });
    }
    if (tidiers.length > 0) onWoken(await idle.wake(tidiers));
  }

  async #repeat(): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      const wait = await this.#safely(this.ring(), "what is left open");
      if (this.#looks++ % looksPerTidying === 0) await this.#safely(this.tidy(), "idle conversations");
      await clock.sleep(wait ?? lookEveryMs, this.#stopped.signal).catch(() => {});
    }
  }

  async #safely<Result>(work: Promise<Result>, what: string): Promise<Result | undefined> {
    return work.catch((error: unknown) => {
      if (!this.#stopped.signal.aborted) this.#parts.log.warn(`looking for ${what}: ${messageOf(error)}`);
      return undefined;
    });
  }

  async #ringOne(silence: DueSilence): Promise<void> {
    const { clock, directory, onWoken, readMissed, rights, silences } = this.#parts;
    const agent = await directory.find(silence.agent);
    const requesters: UserId[] = [];
    for (const userId of silence.requesters)
      if (includesLevel(await rights.of(userId), "chat")) requesters.push(userId);
    // Nobody is left for whom it would act, or the agent does not follow up any more.
    if (!agent || agent.settings.followUpAfterSeconds === null || requesters.length === 0) return silences.end(silence);
    // Somebody may have answered in an event that the homeserver has not brought.
    await readMissed(silence.userId, silence.roomId);
    const { promiseAt, questionAt, quietSeconds, todos, waitSeconds } = silence;
    const nextSeconds = 2 * waitSeconds > waitMost ? undefined : 2 * waitSeconds;
    const open = { promiseAt, questionAt, quietSeconds, todos, nextSeconds };
    const noticed = this.#ask({ agent, at: clock.now(), open });
    if (noticed) onWoken(await silences.ring(silence, wakesOf(silence, requesters, noticed)));
  }

  #ask(lull: Lull): Observation | undefined {
    for (const sensor of this.#parts.sensors) {
      const noticed = sensor.elapse?.(lull);
      if (noticed) return noticed;
    }
    return undefined;
  }
}

/** With this begins the chain of all wakes for one silence: agents that are woken by what is said then share its budget. */
const silenceChain = "quiet:";

/** One wake for each person for whom the agent acts; the first tells it. */
function wakesOf(
  { agent, roomId, rung, turnId }: DueSilence,
  requesters: readonly UserId[],
  { note, reason }: Observation,
): WakeDraft[] {
  const chain = `${silenceChain}${turnId}`;
  return requesters.map((requester, index) => ({
    key: `${chain}:${rung}:${requester}`,
    agent,
    roomId,
    reason,
    requester,
    chain,
    ...(index === 0 && note && { note: toStored(note) }),
  }));
}
