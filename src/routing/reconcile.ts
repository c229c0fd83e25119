import type { Agent, AgentDirectory } from "../agent/agent.ts";
import type { Rights } from "../agent/rights.ts";
import type { Events, IncomingEvent } from "../database/events.ts";
import type { Leases } from "../database/leases.ts";
import type { Outbox } from "../database/outbox.ts";
import type { Rooms } from "../database/rooms.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { HomeserverError, type MatrixClient } from "../matrix/client.ts";
import { readEvent } from "../matrix/events.ts";
import { readEnd, readMissed, type Swept, type SweptRoom } from "../matrix/sweep.ts";
import { asIncoming } from "./intake.ts";
import { answerInvite } from "./invite.ts";

const everyMs = 15 * 60_000;
/** A sweep that failed is made again after this. */
const againAfterMs = 30_000;
/** Agents are swept one after the other with this pause, so that the homeserver has time for people. */
const pauseMs = 20;

export interface ReconcilerParts {
  readonly client: MatrixClient;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly outbox: Outbox;
  readonly leases: Leases;
  readonly rights: Rights;
  readonly clock: Clock;
  readonly log: Log;
  readonly onStored: (roomIds: readonly RoomId[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** Events that the sweep found and the push had not brought. */
  readonly onFound: (count: number) => void;
}

/**
 * Finds what the homeserver did not push: it keeps what it holds back in memory, and loses it with its process. Each
 * agent's own record is read from where it was read last, and the control room back to what is known of it; what is
 * unknown goes the way of every other event.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Sweeps now, whenever more is ours, and regularly. */
  start(): void {
    this.#parts.leases.onGain(() => void this.sweep());
    void this.sweep();
    void this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.#next;
  }

  /** Reads now what this user of ours has missed, in this room at least. */
  async sweepUser(userId: UserId, roomId: RoomId): Promise<void> {
    const agent = (await this.#parts.directory.all()).find((one) => one.userId === userId);
    await (agent ? this.#sweepAgent(agent) : this.#sweepRoom(roomId));
  }

  /** Sweeps all that are ours; resolves after a sweep that began after the call. */
  sweep(): Promise<void> {
    if (this.#running) {
      this.#next ??= this.#running.then(() => {
        this.#next = undefined;
        return this.sweep();
      });
      return this.#next;
    }
    this.#running = this.#sweepAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #repeat(): Promise<void> {
    try {
      for (;;) {
        await this.#parts.clock.sleep(everyMs, this.#stopped.signal);
        await this.sweep();
      }
    } catch {
      // Stopped.
    }
  }

  async #sweepAll(): Promise<void> {
    const { clock, directory, leases, log, rooms } = this.#parts;
    if (this.#stopped.signal.aborted) return;
    try {
      const control = await rooms.controlRoom();
      if (control !== undefined && leases.holds(control)) await this.#sweepRoom(control);
      for (const agent of await directory.all()) {
        if (this.#stopped.signal.aborted) return;
        if (!agent.registered || !leases.holds(agent.userId)) continue;
        await this.#sweepAgent(agent).catch((error: unknown) => {
          if (!(error instanceof HomeserverError && error.final)) throw error;
          log.warn({ agent: agent.name }, `the homeserver does not let this agent be swept: ${messageOf(error)}`);
        });
        await clock.sleep(pauseMs, this.#stopped.signal);
      }
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      log.warn(`the sweep failed and is made again in ${againAfterMs / 1_000} s: ${messageOf(error)}`);
      this.#waiting ??= clock.sleep(againAfterMs, this.#stopped.signal).then(
        () => {
          this.#waiting = undefined;
          void this.sweep();
        },
        () => {},
      );
    }
  }

  /** A room that the bot is in. */
  async #sweepRoom(roomId: RoomId): Promise<void> {
    const { client } = this.#parts;
    await this.#store(client.botUserId, [await readEnd(client, client.botUserId, roomId, this.#areKnown)]);
  }

  async #sweepAgent(agent: Agent): Promise<void> {
    const { client, directory } = this.#parts;
    const swept = await readMissed(client, agent.userId, agent.syncToken ?? undefined, this.#areKnown);
    await this.#store(agent.userId, swept.rooms);
    await this.#answerInvites(agent, swept);
    await directory.table.sweptTo(agent.name, swept.next);
  }

  readonly #areKnown = async (ids: readonly EventId[]): Promise<boolean> =>
    (await this.#parts.events.positions(ids)).size > 0;

  async #store(user: UserId, rooms: readonly SweptRoom[]): Promise<void> {
    const { events, log, onFound, onStored } = this.#parts;
    let found = 0;
    for (const room of rooms) {
      const missed = await this.#placeMissed(user, room);
      if (missed.length === 0) continue;
      found += missed.length;
      onStored(await events.store(missed, "sweep"));
    }
    if (found > 0) log.info({ user, found }, "the sweep found events that were not pushed");
    onFound(found);
  }

  /**
   * What is unknown in a stretch of timeline, each with its place between the events that are known. What was before the
   * user came is none of it: nobody has sent it to us, and nobody waits for what follows from it.
   */
  async #placeMissed(userId: UserId, room: SweptRoom): Promise<IncomingEvent[]> {
    const read = room.events.flatMap((value) => {
      const event = readEvent({ ...value, room_id: room.roomId });
      return event.ok ? [event.event] : [];
    });
    const positions = await this.#parts.events.positions(read.map((event) => event.event_id));
    const since = await this.#parts.events.joinedAt(room.roomId, userId);
    const missed: IncomingEvent[] = [];
    let run: typeof read = [];
    for (const event of read) {
      const position = positions.get(event.event_id);
      if (position === undefined) {
        run.push(event);
        continue;
      }
      if (run.length > 0 && position > since) {
        const before = await this.#parts.events.positionBefore(room.roomId, position);
        const step = (position - before) / (run.length + 1);
        missed.push(...run.map((late, index) => asIncoming(late, before + step * (index + 1))));
      }
      run = [];
    }
    return [...missed, ...run.map((event) => asIncoming(event))];
  }

  /** A missed invite has no event id: its key is the room, the agent, and up to where the agent was read. */
  async #answerInvites(agent: Agent, swept: Swept): Promise<void> {
    for (const { roomId, inviter } of swept.invites) {
      const known = await this.#parts.rooms.membership(roomId, agent.userId);
      if (known === "invite" || known === "join") continue;
      const room = await this.#parts.rooms.context(roomId);
      const draft = await answerInvite(
        { roomId, agent, inviter, key: agent.syncToken ?? "first", offLimits: room.kind !== "chat" },
        { rights: this.#parts.rights, botUserId: this.#parts.client.botUserId },
      );
      await this.#parts.outbox.add([draft]);
      this.#parts.onOutbox([roomId]);
    }
  }
}
