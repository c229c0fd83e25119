import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { type Database, withinPatience } from "./connection.ts";
import type { Notifier } from "./notify.ts";
import { type Proof, Shards, shardCount, shardOf } from "./shards.ts";

/** Names the work that needs a lease: routing a room's events, or sending its outbox. */
type Work = "events" | "outbox";

/**
 * Divides rooms and agents among the processes that share a database: one process at a time works on each. A process
 * that dies is replaced when its leases have run out by the database's clock. Work under a lease must nevertheless be
 * safe to do twice: no lease can keep a process that fell asleep from finishing its work when it wakes.
 */
export interface Leases {
  /** Name of this process in the rows that it works on: as people know it, with a part that is new at each start. */
  readonly session: string;
  /** Begins to take work: that of a dead process with our name, and a fair share of the work that nobody has. */
  start(): Promise<void>;
  /** Gives everything back; nothing may be under way any more. */
  stop(): Promise<void>;
  /** True if no other process lives on this database. */
  readonly isAlone: boolean;
  /** True while this process has renewed its leases in time, and no other has taken its name. */
  readonly isLive: boolean;
  /** Tells if this process works on the room or agent now. Ask before each single action. */
  holds(key: string): boolean;
  /** Proof for the statement that takes work; undefined if there is no other process. */
  proof(key: string): Proof | undefined;
  /** Chooses the rooms that are ours, and tells the other processes of theirs. */
  mine<Key extends string>(work: Work, keys: readonly Key[]): readonly Key[];
  /**
   * Calls `take` with rooms of ours that have work: those that `pending` finds, now and whenever a message may have been
   * lost, and those that other processes name.
   */
  serve<Key extends string>(
    work: Work,
    take: (keys: readonly Key[]) => void,
    pending: () => Promise<Key[]>,
  ): Promise<void>;
  /** Calls `look` whenever another process may have left work behind, or its message may have been lost. */
  onChange(look: () => void): void;
  /** Calls `look` when this process got rooms or agents: nobody may have looked for missed events there. */
  onGain(look: () => void): void;
}

/** Leases of the only process. */
const everything: Omit<Leases, "session" | "start"> = {
  stop: async () => {},
  isAlone: true,
  isLive: true,
  holds: () => true,
  proof: () => undefined,
  mine: (_work, keys) => keys,
  serve: async (_work, take, pending) => take(await pending()),
  onChange() {},
  onGain() {},
};

/** Time after its request in which a process relies on a lease, measured by a clock that nobody can set. */
const trustMs = 8_000;
const renewEveryMs = 3_000;
const answerWithinMs = 2_000;
/**
 * Time for which a shard that was given away rests before another process may work on it: longer than one event or
 * message takes.
 */
const handOverMs = 1_000;
/** Interval of looks without a message: messages of other processes may be lost. */
const lookEveryMs = 10_000;

/** The embedded database has one process only, which has everything, and writes down when it began. */
export const openLeases = (parts: LeaseParts): Leases => {
  if (!("dir" in parts.database.location)) return new SharedLeases(parts);
  const { name, database } = parts;
  const session = newSession(name);
  return { ...everything, session, start: () => new Shards(database, { name, session }).enter() };
};

const newSession = (name: string): string => `${name} ${secret(8)}`;

interface LeaseParts {
  readonly database: Database;
  readonly notifier: Notifier;
  /** Names this process, the same after a restart; no two that run at the same time may share it. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

class SharedLeases implements Leases {
  readonly #parts: LeaseParts;
  readonly #shards: Shards;
  readonly session: string;
  readonly #stopped = new AbortController();
  #looks: (() => void)[] = [];
  readonly #gains: (() => void)[] = [];
  #held = new Set<number>();
  /** Shards that are given back with the next renewal; nobody here works on them any more. */
  #leaving: number[] = [];
  #trustedUntil = 0;
  #lookedAt = 0;
  #others = 0;
  #isReplaced = false;
  #running: Promise<void> | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.session = newSession(parts.name);
    this.#shards = new Shards(parts.database, { name: parts.name, session: this.session });
    parts.notifier.on("shards", () => this.#wake.resolve());
  }

  get isAlone(): boolean {
    return this.#others === 0;
  }

  get isLive(): boolean {
    return !this.#isReplaced && this.#parts.clock.monotonic() < this.#trustedUntil;
  }

  holds(key: string): boolean {
    return this.#held.has(shardOf(key)) && this.#parts.clock.monotonic() < this.#trustedUntil;
  }

  proof(key: string): Proof {
    return { shard: shardOf(key), session: this.session };
  }

  mine<Key extends string>(work: Work, keys: readonly Key[]): readonly Key[] {
    const ours = this.#ours(keys);
    if (ours.length < keys.length)
      this.#parts.notifier.tell(
        work,
        keys.filter((key) => !this.holds(key)),
      );
    return ours;
  }

  async serve<Key extends string>(
    work: Work,
    take: (keys: readonly Key[]) => void,
    pending: () => Promise<Key[]>,
  ): Promise<void> {
    const look = async () => take(this.#ours(await pending()));
    const lookSoon = () => void look().catch((error: unknown) => this.#parts.log.warn(messageOf(error)));
    this.#parts.notifier.on(work, (keys) => (keys ? take(this.#ours(keys as readonly Key[])) : lookSoon()));
    this.#looks.push(lookSoon);
    await look();
  }

  onChange(look: () => void): void {
    this.#looks.push(look);
  }

  onGain(look: () => void): void {
    this.#gains.push(look);
  }

  async start(): Promise<void> {
    await this.#shards.enter();
    await this.#renew();
    this.#parts.notifier.tell("shards");
    this.#running = this.#keepRenewing();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#wake.resolve();
    await this.#running;
    this.#held.clear();
    await this.#shards.leave();
    this.#parts.notifier.tell("shards");
  }

  async #keepRenewing(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      const pause = clock.sleep(this.#leaving.length > 0 ? handOverMs : renewEveryMs, this.#stopped.signal);
      await Promise.race([pause.catch(() => {}), this.#wake.promise]);
      this.#wake = Promise.withResolvers();
      if (this.#stopped.signal.aborted) return;
      await this.#renew().catch((error: unknown) => log.warn(`leases are not renewed: ${messageOf(error)}`));
    }
  }

  #ours<Key extends string>(keys: readonly Key[]): readonly Key[] {
    return keys.filter((key) => this.holds(key));
  }

  async #renew(): Promise<void> {
    const { clock, notifier } = this.#parts;
    const asked = clock.monotonic();
    const leaving = this.#leaving;
    const { held, others, isReplaced } = await withinPatience(this.#shards.renew(leaving), answerWithinMs);
    // Work that came while no lease was certain was passed by. Look for all of it now, as if every shard had just been
    // gained.
    const before = clock.monotonic() < this.#trustedUntil ? this.#held : new Set<number>();
    if (leaving.length > 0) notifier.tell("shards");
    const fair = Math.ceil(shardCount / (others + 1));
    this.#held = new Set(held.slice(0, fair));
    this.#leaving = held.slice(fair);
    this.#trustedUntil = asked + trustMs;
    this.#report(before.size, others, isReplaced);
    const hasGained = [...this.#held].some((shard) => !before.has(shard));
    const hasChanged = hasGained || others !== this.#others;
    this.#others = others;
    this.#isReplaced = isReplaced;
    if (hasGained) for (const look of this.#gains) look();
    if (!hasChanged && (this.isAlone || asked - this.#lookedAt < lookEveryMs)) return;
    this.#lookedAt = asked;
    for (const look of this.#looks) look();
  }

  #report(before: number, others: number, isReplaced: boolean): void {
    const { log, name } = this.#parts;
    if (isReplaced && !this.#isReplaced)
      log.error(
        `another process has started as "${name}": give each its own bridge.instance; this one works on no room`,
      );
    if (this.#held.size !== before || others !== this.#others)
      log.info({ others, shards: this.#held.size }, "rooms are shared out among the processes");
  }
}
