import type { Leases } from "../../adapters/database/leases.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { RoomKey } from "../../domain/crypto/machine.ts";
import type { Machines } from "../../domain/crypto/machines.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { CryptoMachines } from "../../domain/tables/crypto-machines.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { SealedEvent, SealedEvents } from "../../domain/tables/sealed-events.ts";
import { sealedNotice } from "./notices.ts";
import type { KindOf } from "./project.ts";

/** Time in which a key may follow its message; then people are told. */
const silentSeconds = 10;
/** Limits of the pause between requests for a key, which is a quarter of the time waited so far. */
const soonestSeconds = 0.5;
const latestSeconds = 60;
const latelyMs = 60_000;
/** A room is told of so many keys within this time: of more there is nothing new to say. */
const tellingsMost = 3;
const tellingsMs = 10 * 60_000;

interface SealedKeeperParts {
  readonly machines: Pick<Machines, "run">;
  readonly sealed: SealedEvents;
  readonly events: Pick<Events, "hasAnsweredUnknown" | "find">;
  readonly devices: Pick<CryptoMachines, "find">;
  readonly kindOf: KindOf;
  readonly outbox: Pick<Outbox, "add">;
  readonly rights: Pick<Rights, "of">;
  readonly leases: Pick<Leases, "holds">;
  readonly clock: Clock;
  readonly log: Log;
  readonly onReleased: (roomIds: readonly RoomId[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Looks for the keys of events that cannot be read yet, and tells people if a key does not come. */
export class SealedKeeper {
  readonly #parts: SealedKeeperParts;
  readonly #stopped = new AbortController();
  readonly #askedAt = new Map<UserId, number>();
  /** Sessions of which people were told, or need not be. */
  #told = new Set<string>();
  /** When rooms were told lately, by the monotonic clock. */
  readonly #tellings = new Map<RoomId, readonly number[]>();
  /** Sessions whose keys came lately, by the monotonic clock: an event of theirs may be put aside behind its key. */
  readonly #came = new Map<string, number>();
  /** Events that were tried again for such a key. */
  #retried = new Set<EventId>();
  #nudged = Promise.withResolvers<void>();
  #working: Promise<void> = Promise.resolve();

  constructor(parts: SealedKeeperParts) {
    this.#parts = parts;
  }

  /** Tries to read all waiting events once more, and goes on while any of them waits. */
  start(): void {
    void this.#release();
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.nudge();
    await this.#working;
  }

  /** Takes note that an event waits for its key. */
  nudge(): void {
    this.#nudged.resolve();
    this.#nudged = Promise.withResolvers();
  }

  /** Takes note that these keys have come. */
  keysCame(keys: readonly RoomKey[]): void {
    for (const key of keys) this.#came.set(sessionOf(key), this.#parts.clock.monotonic());
    void this.#release(keys);
  }

  async #release(keys?: readonly RoomKey[]): Promise<void> {
    const { log, onReleased, sealed } = this.#parts;
    try {
      onReleased(await sealed.release(keys));
    } catch (error) {
      log.warn(`events whose keys have come are read later: ${messageOf(error)}`);
    }
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      const nudged = this.#nudged.promise;
      let pause = latestSeconds;
      try {
        pause = await this.#look();
      } catch (error) {
        log.warn(`keys that have not come are looked for later: ${messageOf(error)}`);
      }
      const sleeping = new AbortController();
      const ended = AbortSignal.any([sleeping.signal, this.#stopped.signal]);
      // New events do not shorten the pause of older ones.
      await Promise.race([nudged, clock.sleep(pause * 1_000, ended)]).catch(() => {});
      sleeping.abort();
    }
  }

  /** Looks; returns the seconds until the next look. */
  async #look(): Promise<number> {
    const { leases, sealed } = this.#parts;
    await sealed.forgetOld();
    const waiting = (await sealed.findWaiting()).filter(({ roomId }) => leases.holds(roomId));
    this.#told = new Set(waiting.map(sessionOf).filter((session) => this.#told.has(session)));
    await this.#retry(waiting);
    for (const event of waiting) if (event.ageSeconds >= silentSeconds) await this.#tell(event);
    const youngest = new Map(waiting.map(({ userId, ageSeconds }) => [userId, ageSeconds]));
    for (const [userId, age] of youngest) await this.#ask(userId, pauseAfter(age));
    return Math.min(latestSeconds, ...[...youngest.values()].map(pauseAfter), ...this.#untilTold(waiting));
  }

  /** Has each event tried once more that was put aside while its key came. */
  async #retry(waiting: readonly SealedEvent[]): Promise<void> {
    const since = this.#parts.clock.monotonic() - latelyMs;
    for (const [session, at] of this.#came) if (at < since) this.#came.delete(session);
    this.#retried = new Set(waiting.map(({ eventId }) => eventId).filter((id) => this.#retried.has(id)));
    const behind = waiting.filter((event) => this.#came.has(sessionOf(event)) && !this.#retried.has(event.eventId));
    if (behind.length === 0) return;
    for (const { eventId } of behind) this.#retried.add(eventId);
    await this.#release(behind);
  }

  #untilTold(waiting: readonly SealedEvent[]): number[] {
    return waiting
      .filter(({ ageSeconds }) => ageSeconds < silentSeconds)
      .map(({ ageSeconds }) => Math.max(soonestSeconds, silentSeconds - ageSeconds));
  }

  async #ask(userId: UserId, everySeconds: number): Promise<void> {
    const { clock, log, machines } = this.#parts;
    const now = clock.monotonic();
    if (now - (this.#askedAt.get(userId) ?? Number.NEGATIVE_INFINITY) < everySeconds * 900) return;
    this.#askedAt.set(userId, now);
    await machines
      .run(userId, (machine) => machine.pull())
      .catch((error: unknown) => log.info(`${userId} looks for keys later: ${messageOf(error)}`));
  }

  /** Sends one notice for each session, by one agent of the room; the outbox knows earlier ones. */
  async #tell(waiting: SealedEvent): Promise<void> {
    const { devices, events, onOutbox, outbox, rights } = this.#parts;
    const session = sessionOf(waiting);
    if (this.#told.has(session)) return;
    const before = this.#tellingsIn(waiting.roomId);
    const event = before.length < tellingsMost ? await events.find(waiting.eventId) : undefined;
    if (event && (await this.#isMissed(waiting, event)) && includesLevel(await rights.of(event.sender), "chat")) {
      const isOlder = event.sentAt < ((await devices.find(waiting.userId))?.publishedAt ?? event.sentAt);
      await outbox.add(sealedNotice(isOlder ? { ...waiting, reason: "early" } : waiting, event));
      onOutbox([waiting.roomId]);
      this.#tellings.set(waiting.roomId, [...before, this.#parts.clock.monotonic()]);
    }
    this.#told.add(session);
  }

  #tellingsIn(roomId: RoomId): readonly number[] {
    const since = this.#parts.clock.monotonic() - tellingsMs;
    return (this.#tellings.get(roomId) ?? []).filter((at) => at > since);
  }

  /** True if people miss an answer: a message of a person, not redacted, and not answered before a restore. */
  async #isMissed({ userId }: SealedEvent, event: StoredEvent): Promise<boolean> {
    const { events, kindOf } = this.#parts;
    if (event.content.ciphertext === undefined || kindOf(event.sender) !== "human") return false;
    return !(await events.hasAnsweredUnknown({ userId }, event));
  }
}

const sessionOf = ({ roomId, sessionId }: RoomKey): string => `${roomId} ${sessionId}`;

const pauseAfter = (ageSeconds: number): number => Math.min(latestSeconds, Math.max(soonestSeconds, ageSeconds / 4));
