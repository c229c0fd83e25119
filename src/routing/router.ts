import type { Database } from "../database/connection.ts";
import type { Events, PendingEvent } from "../database/events.ts";
import type { Leases } from "../database/leases.ts";
import { type Fresh, pendingIn, type Waiting } from "../database/pending.ts";
import type { RoomContext } from "../database/room-context.ts";
import type { Rooms } from "../database/rooms.ts";
import { type Conversation, settle } from "../database/routing.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { RoomId, UserId } from "../lib/ids.ts";
import { about, type Log } from "../lib/log.ts";
import { Mailbox } from "../lib/mailbox.ts";
import { HomeserverError, type MatrixClient } from "../matrix/client.ts";
import { agentName } from "../matrix/message.ts";
import { readMember } from "../matrix/state.ts";
import { hydrate } from "./hydrate.ts";
import type { Judge } from "./judge.ts";

const batch = 100;
/** What comes behind a command waits for it this long. */
const patienceMs = 500;
/** A room whose routing failed (the homeserver was asked and did not answer) is tried again after this. */
const retryAfterMs = 2_000;

export interface RouterParts {
  readonly database: Database;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly leases: Leases;
  readonly client: MatrixClient;
  readonly judge: Judge;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** The row of the outbox with this key has come back as an event, and is marked as sent. */
  readonly onEcho: (key: string) => void;
  /** A file waits to be fetched. */
  readonly onMedia: () => void;
  /** An agent's or the bot's membership changed. */
  readonly onMembership: (roomId: RoomId, userId: UserId, membership: string) => void;
}

/**
 * Takes stored events on, in room order: one room at a time, many rooms side by side. A command that takes long is
 * overtaken by what comes behind it; until it is done it is stored as not routed, so that no death loses it.
 */
export class Router {
  readonly #parts: RouterParts;
  readonly #mailbox: Mailbox<RoomId>;
  /** Commands that take long, by `seq`. */
  readonly #underWay = new Map<number, Promise<void>>();
  readonly #stopped = new AbortController();
  /** Rooms in which something waits for `release`. */
  #held: Set<RoomId> | undefined;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#mailbox = new Mailbox((roomId, error) => this.#retryLater(roomId, error));
  }

  /** Something new is stored in these rooms. */
  route(roomIds: readonly RoomId[]): void {
    this.#take(this.#parts.leases.mine("events", roomIds));
  }

  /** The same, where what is new may have been handed over with it: a room with nothing else to do is given it as it is. */
  routeFresh(fresh: readonly Fresh[]): void {
    const ours = new Set(
      this.#parts.leases.mine(
        "events",
        fresh.map(({ roomId }) => roomId),
      ),
    );
    for (const { roomId, waiting } of fresh)
      if (ours.has(roomId)) this.#post(roomId, this.#mailbox.isBusy(roomId) ? undefined : waiting);
  }

  /** What is stored from now on waits until `release`: what belongs before it may be missing. */
  hold(): void {
    this.#held ??= new Set();
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.route([...held]);
  }

  /** Takes up what was stored and not routed, here or in another process. */
  async start(): Promise<void> {
    const { events, leases } = this.#parts;
    await leases.serve(
      "events",
      (roomIds) => this.#take(roomIds),
      () => events.roomsWithPending(),
    );
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#mailbox.idle();
    await Promise.all(this.#underWay.values());
  }

  #retryLater(roomId: RoomId, error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const { clock, log } = this.#parts;
    log.error({ err: error, room: roomId }, `routing failed and is tried again: ${messageOf(error)}`);
    void clock.sleep(retryAfterMs, this.#stopped.signal).then(
      () => this.route([roomId]),
      () => {},
    );
  }

  #take(roomIds: readonly RoomId[]): void {
    for (const roomId of roomIds) this.#post(roomId);
  }

  #post(roomId: RoomId, waiting?: readonly Waiting[]): void {
    if (this.#stopped.signal.aborted) return;
    this.#mailbox.post(roomId, () => about({ room: roomId }, () => this.#routeRoom(roomId, waiting)));
  }

  async #routeRoom(roomId: RoomId, given?: readonly Waiting[]): Promise<void> {
    const { database, leases, rooms } = this.#parts;
    for (let more = given; ; more = undefined) {
      const waiting = more ?? (await pendingIn(database, roomId, batch, [...this.#underWay.keys()]));
      let room = waiting[0]?.room;
      for (const { room: _, ...event } of waiting) {
        if (this.#held) return void this.#held.add(roomId);
        if (this.#stopped.signal.aborted || !leases.holds(roomId)) return;
        await this.#routeEvent(event, room ?? (await rooms.context(roomId)));
        // Only state changes what is known of a room.
        if (event.stateKey !== null) room = null;
      }
      if (waiting.length < batch) return;
    }
  }

  async #routeEvent(event: PendingEvent, room: RoomContext): Promise<void> {
    const { client, events, judge, rooms, serverName } = this.#parts;
    const membership = event.type === "m.room.member" ? readMember(event.content)?.membership : undefined;
    const member = event.stateKey as UserId;
    const isAgent = membership !== undefined && agentName(member, serverName) !== undefined;
    // The join is projected by what is read; only a first join has something to read.
    if (isAgent && membership === "join" && (await rooms.membership(event.roomId, member)) !== "join") {
      await hydrate(client, { events, rooms }, event, member, judge.kindOf, judge.ignores).catch(
        async (error: unknown) => {
          // Whoever has left since may not be let in to read, and needs not.
          if (!(error instanceof HomeserverError && error.final && (await events.isOutdated(event)))) throw error;
        },
      );
    }
    const settled = this.#settle(event, room, membership);
    await (judge.isCommand(event) ? this.#awaitSome(event, settled) : settled);
  }

  /** Waits for a while; what is not settled then is left to itself. */
  async #awaitSome({ seq, roomId }: PendingEvent, settled: Promise<void>): Promise<void> {
    const patience = new AbortController();
    const waited = this.#parts.clock.sleep(patienceMs, patience.signal).then(
      () => true,
      () => false,
    );
    const isLong = await Promise.race([settled.then(() => false), waited]).finally(() => patience.abort());
    if (!isLong) return;
    const ended = settled
      .finally(() => this.#underWay.delete(seq))
      .catch((error: unknown) => this.#retryLater(roomId, error));
    this.#underWay.set(seq, ended);
  }

  async #settle(event: PendingEvent, room: RoomContext, membership: string | undefined): Promise<void> {
    const { database, judge } = this.#parts;
    const effects = await judge.judge(event, room);
    const woken = await settle(database, event, effects);
    const member = event.stateKey as UserId;
    if (membership !== undefined && judge.kindOf(member) !== "human")
      this.#parts.onMembership(event.roomId, member, membership);
    if (effects.echoOf !== undefined) this.#parts.onEcho(effects.echoOf);
    if (effects.outbox?.length) this.#parts.onOutbox(effects.outbox.map((draft) => draft.roomId));
    if (effects.media?.state === "pending") this.#parts.onMedia();
    if (woken.length > 0) this.#parts.onWoken(woken);
  }
}
