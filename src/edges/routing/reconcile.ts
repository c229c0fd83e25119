import type { Leases } from "../../adapters/database/leases.ts";
import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import { readAfter, readEnd, readMissed, type Swept, type SweptRoom } from "../../adapters/matrix/sweep.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError, UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { JoinRules } from "../../domain/tables/join-rules.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { snapshotOf } from "./hydrate.ts";
import { answerInvite } from "./invite.ts";
import { MissedEvents } from "./missed.ts";
import { readOnce } from "./read-once.ts";

const everyMs = 15 * 60_000;
/** Pause after which a failed sweep is repeated. */
const againAfterMs = 30_000;
/** Time from the last push of what the homeserver held back to one more sweep. */
const onceMoreAfterMs = 15_000;
/** Events of a room that are held in memory: a longer stretch is stored in parts. */
const eventsAtOnce = 3_000;
/** Pause between the sweeps of two agents, so that the homeserver has time for people. */
const pauseMs = 20;

export interface ReconcilerParts {
  readonly client: MatrixClient;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly joinRules: JoinRules;
  readonly outbox: Outbox;
  readonly leases: Leases;
  readonly rights: Rights;
  readonly clock: Clock;
  readonly log: Log;
  /** True if the homeserver pushes to no other bridge the events that we would find. */
  readonly maySweep: () => Promise<boolean>;
  readonly onStored: (roomIds: readonly RoomId[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** Events that the sweep found and the push had not brought. */
  readonly onFound: (count: number) => void;
}

/**
 * Finds events that the homeserver did not push: it holds waiting events in memory, and loses them with its process. A
 * sweep reads, for each agent and for the control room, everything since the last sweep; unknown events go the way of
 * every other event. Until all of them are stored, the next sweep begins at the same place.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #stopped = new AbortController();
  readonly #sweepAgentOnce = readOnce(async (userId: UserId) => {
    const agent = await this.#agent(userId);
    if (agent) await this.#sweepAgent(agent);
  });
  /** Reads, once since the start, what this user of ours has missed in this room; see `readOnce`. */
  readonly readMissed = readOnce(async (userId: UserId, roomId: RoomId) => {
    const agent = await this.#agent(userId);
    // A sweep with a token reads all of the agent's rooms.
    if (agent && agent.syncToken !== null) await this.#sweepAgentOnce(userId);
    else await this.sweepUser(userId, roomId);
  });
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  /** Time at which the homeserver last pushed what it had held back. */
  #heldBackAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Sweeps now, whenever this process gets more rooms or agents, and regularly. */
  start(): void {
    this.#parts.leases.onGain(() => void this.sweep());
    void this.sweep();
    void this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new RetryError("the process ends"));
    await this.#running;
    await this.#next;
  }

  /** Reads now what this user of ours has missed, in this room at least. */
  async sweepUser(userId: UserId, roomId: RoomId): Promise<void> {
    const agent = await this.#agent(userId);
    if (!agent) return this.#sweepRoom(roomId);
    await this.#sweepAgent(agent);
    // The first sweep only tells the place in the homeserver's stream.
    if (agent.syncToken === null) await this.#storeEnd(userId, roomId);
  }

  /** Sweeps all agents of this process; resolves after a sweep that began after the call. */
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

  /**
   * Sweeps once more a little after the homeserver has pushed what it held back; called as long as it does. Synapse may
   * keep back what it wrote down in the moment in which it had pushed all of that, until it misses us the next time.
   */
  sweepOnceMore(): void {
    this.#heldBackAt = this.#parts.clock.monotonic();
    this.#sweepAfter(onceMoreAfterMs);
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
    const { clock, directory, leases, log, maySweep, rooms } = this.#parts;
    if (this.#stopped.signal.aborted) return;
    try {
      if (!(await maySweep())) throw new Error("the homeserver pushes to another bridge");
      const control = await rooms.controlRoom();
      if (control !== undefined && leases.holds(control)) await this.#sweepRoom(control);
      for (const agent of await directory.all()) {
        if (this.#stopped.signal.aborted) return;
        if (!agent.isRegistered || !leases.holds(agent.userId)) continue;
        await this.#sweepAgent(agent).catch((error: unknown) => {
          // The other agents are swept all the same.
          if (!(error instanceof UserError || (error instanceof HomeserverError && error.isFinal))) throw error;
          log.warn({ agent: agent.name }, `this agent cannot be swept: ${messageOf(error)}`);
        });
        await clock.sleep(pauseMs, this.#stopped.signal);
      }
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      log.warn(`the sweep failed and is made again in ${againAfterMs / 1_000} s: ${messageOf(error)}`);
      this.#sweepAfter(againAfterMs);
    }
  }

  #sweepAfter(ms: number): void {
    this.#waiting ??= this.#parts.clock.sleep(ms, this.#stopped.signal).then(
      () => {
        this.#waiting = undefined;
        const rest = this.#heldBackAt + onceMoreAfterMs - this.#parts.clock.monotonic();
        if (rest > 0) this.#sweepAfter(rest);
        void this.sweep();
      },
      () => {},
    );
  }

  /** Of rooms that we were in before we kept their rules for joining: until they are read, these count as open. */
  async #readRules(userId: UserId): Promise<void> {
    const { client, joinRules, log } = this.#parts;
    for (const roomId of await joinRules.findUnread(userId)) {
      try {
        const { state } = snapshotOf(roomId, await client.roomState({ userId }, roomId), () => "human");
        const rules = state.find(({ type }) => type === "m.room.join_rules");
        // A room without any is by invitation.
        await joinRules.keep(roomId, rules?.content ?? { join_rule: "invite" }, rules?.sender ?? userId);
      } catch (error) {
        if (!(error instanceof HomeserverError && error.isFinal)) throw error;
        log.warn({ user: userId, room: roomId }, `who may join this room cannot be read: ${messageOf(error)}`);
      }
    }
  }

  /** A room that the bot is in, from where it was read last. */
  async #sweepRoom(roomId: RoomId): Promise<void> {
    const { client, rooms } = this.#parts;
    const { botUserId } = client;
    await this.#readRules(botUserId);
    const token = await rooms.botToken(roomId);
    const next =
      token === undefined
        ? await this.#storeEnd(botUserId, roomId)
        : await this.#storeRoom(botUserId, { roomId, events: [], after: token });
    if (next !== undefined) await rooms.botReadTo(roomId, next);
  }

  async #agent(userId: UserId): Promise<Agent | undefined> {
    return (await this.#parts.directory.all()).find((one) => one.userId === userId);
  }

  async #sweepAgent(agent: Agent): Promise<void> {
    const { client, directory } = this.#parts;
    await this.#readRules(agent.userId);
    const swept = await readMissed(client, agent.userId, agent.syncToken ?? undefined);
    for (const room of swept.rooms) await this.#storeRoom(agent.userId, room);
    await this.#answerInvites(agent, swept);
    await directory.table.sweptTo(agent.name, swept.next);
  }

  /** Stores unknown events of the room; returns the token behind them. */
  async #storeRoom(userId: UserId, { after, events, roomId, state = [] }: SweptRoom): Promise<string | undefined> {
    const missed = new MissedEvents(this.#parts, { userId, roomId, after });
    // Pages go on to the end of the room, and events may begin before them: each event is taken once, in its order there.
    const ends = new Map(events.map((event, index) => [event.event_id, index + 1]));
    let [isRead, inPages] = [false, 0];
    let next = after;
    let part: Record<string, unknown>[] = [];
    try {
      for await (const page of after === undefined ? [] : readAfter(this.#parts.client, userId, roomId, after)) {
        this.#stopped.signal.throwIfAborted();
        next = page.next ?? next;
        part.push(...page.events);
        for (const { event_id: id } of page.events) inPages = Math.max(inPages, ends.get(id) ?? 0);
        isRead ||= page.events.length > 0;
        if (part.length < eventsAtOnce) continue;
        await missed.store(part, false);
        part = [];
      }
      await missed.store([...part, ...(isRead ? [] : state), ...events.slice(inPages)], true);
    } finally {
      this.#found(userId, roomId, missed.found);
    }
    return next;
  }

  /** Stores unknown events at the end of a room, if it is unknown how far the user has read. */
  async #storeEnd(userId: UserId, roomId: RoomId): Promise<string | undefined> {
    const { events, next } = await readEnd(this.#parts.client, userId, roomId);
    await this.#storeRoom(userId, { roomId, events });
    return next;
  }

  #found(user: UserId, room: RoomId, found: number): void {
    if (found === 0) return;
    const { log, onFound, onStored } = this.#parts;
    log.info({ user, room, found }, "the sweep found events that were not pushed");
    onFound(found);
    // Events behind a message tell if it was answered: all of them are stored before any is routed.
    onStored([room]);
  }

  /** A missed invite has no event id: its key is the room, the agent, and up to where the agent was read. */
  async #answerInvites(agent: Agent, swept: Swept): Promise<void> {
    for (const { roomId, inviter } of swept.invites) {
      const known = await this.#parts.rooms.membership(roomId, agent.userId);
      if (known === "invite" || known === "join") continue;
      const room = await this.#parts.rooms.context(roomId);
      const draft = await answerInvite(
        { roomId, agent, inviter, key: agent.syncToken ?? "first", isOffLimits: room.kind !== "chat" },
        { rights: this.#parts.rights, botUserId: this.#parts.client.botUserId },
      );
      await this.#parts.outbox.add([draft]);
      this.#parts.onOutbox([roomId]);
    }
  }
}
