import type { Database } from "../../adapters/database/connection.ts";
import type { Leases } from "../../adapters/database/leases.ts";
import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import { agentName } from "../../adapters/matrix/message.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { about, type Log } from "../../base/lib/log.ts";
import { Mailbox } from "../../base/lib/mailbox.ts";
import { type Effects, type Settled, settle } from "../../domain/tables/effects.ts";
import type { Events, PendingEvent } from "../../domain/tables/events.ts";
import type { Queued } from "../../domain/tables/outbox.ts";
import { beginCommand, type Fresh, leaveCommands, pendingIn, type Waiting } from "../../domain/tables/pending.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { hydrate } from "./hydrate.ts";
import type { Judge } from "./judge.ts";
import type { PastKeeper } from "./past-keeper.ts";
import { SetAside } from "./set-aside.ts";
import { routeStates } from "./states.ts";
import type { Opened, Unsealing } from "./unsealing.ts";

const batch = 100;
/** Time for which events behind a command wait for it. */
const patienceMs = 500;
/** A room whose routing failed (the homeserver was asked and did not answer) is tried again after this. */
const retryAfterMs = 2_000;

export interface RouterParts {
  readonly database: Database;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly past: Pick<PastKeeper, "nudge" | "readings">;
  readonly leases: Leases;
  readonly client: MatrixClient;
  readonly judge: Judge;
  readonly unsealing: Pick<Unsealing, "open">;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** These rows were queued just now. */
  readonly onQueued: (queued: Queued) => void;
  /** The row of the outbox with this key has come back as an event, and is marked as sent. */
  readonly onEcho: (key: string) => void;
  /** An encrypted event waits for its key. */
  readonly onSealed: () => void;
  /** A file waits to be fetched. */
  readonly onMedia: () => void;
  /** Something was redacted: its words may be repeated somewhere. */
  readonly onRedacted: () => void;
  /** An agent's or the bot's membership changed. */
  readonly onMembership: (roomId: RoomId, userId: UserId, membership: string) => void;
  readonly tellOperators: (text: string, key: string) => void;
  /** A human's membership of a room of the bridge's own changed. */
  readonly onGuest: () => void;
}

/** Result of routing one event. */
interface Routed extends Settled {
  /** The member's, where the event is about one. */
  readonly membership: string | undefined;
  readonly effects: Effects;
}

/**
 * Takes stored events on, in room order: one room at a time, many rooms side by side. A command that takes long is
 * overtaken by what comes behind it; until it is done it is stored as not routed, so that no death loses it.
 */
export class Router {
  readonly #parts: RouterParts;
  readonly #mailbox: Mailbox<RoomId>;
  readonly #setAside: SetAside;
  /** Commands that take long, by `seq`. */
  readonly #underWay = new Map<number, Promise<void>>();
  /** Commands that this process has begun, and that could not be routed. */
  readonly #failed = new Set<number>();
  readonly #stopped = new AbortController();
  /** Rooms in which something waits for `release`. */
  #held: Set<RoomId> | undefined;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#mailbox = new Mailbox((roomId, error) => this.#retryLater(roomId, error));
    this.#setAside = new SetAside({ ...parts, botUserId: parts.client.botUserId });
  }

  /** Something new is stored in these rooms. */
  route(roomIds: readonly RoomId[]): void {
    this.#take(this.#parts.leases.mine("events", roomIds));
  }

  /**
   * Routes new events that came with their room's context: a room with nothing else to do is given them as they are.
   */
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

  /** Pauses routing. New events may have arrived ahead of older ones that Synapse lost; `release` resumes. */
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
      () => events.findRoomsWithPending(),
    );
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#mailbox.idle();
    await Promise.all(this.#underWay.values());
    // Otherwise they wait until this process is known to be gone.
    await this.#leaveFailed().catch(() => {});
  }

  #retryLater(roomId: RoomId, error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const { clock, log } = this.#parts;
    if (error instanceof RetryError) log.warn({ room: roomId }, `routing waits: ${messageOf(error)}`);
    else log.error({ err: error, room: roomId }, `routing failed and is tried again: ${messageOf(error)}`);
    const again = async (): Promise<void> => {
      await clock.sleep(retryAfterMs, this.#stopped.signal);
      await this.#leaveFailed();
      this.route([roomId]);
    };
    void again().catch((failure: unknown) => this.#retryLater(roomId, failure));
  }

  /** Commands that failed are left to whoever has their rooms by now. */
  async #leaveFailed(): Promise<void> {
    const { database, leases } = this.#parts;
    const failed = [...this.#failed];
    if (failed.length > 0) await leaveCommands(database, failed, leases.session);
    for (const seq of failed) this.#failed.delete(seq);
  }

  #take(roomIds: readonly RoomId[]): void {
    for (const roomId of roomIds) this.#post(roomId);
  }

  #post(roomId: RoomId, waiting?: readonly Waiting[]): void {
    if (this.#stopped.signal.aborted) return;
    this.#mailbox.post(roomId, () => about({ room: roomId }, () => this.#routeRoom(roomId, waiting)));
  }

  async #routeRoom(roomId: RoomId, given?: readonly Waiting[]): Promise<void> {
    const { database, judge, leases, rooms } = this.#parts;
    const elsewhere: number[] = [];
    for (let more = given; ; more = undefined) {
      const waiting = more ?? (await pendingIn(database, roomId, batch, [...this.#underWay.keys(), ...elsewhere]));
      let room = waiting[0]?.room;
      for (let next = 0; next < waiting.length; ) {
        if (this.#held) return void this.#held.add(roomId);
        if (this.#stopped.signal.aborted || !leases.holds(roomId)) return;
        room ??= await rooms.context(roomId);
        // Of rooms of the bridge's own each join is heard of.
        const states = room.kind === "chat" ? await routeStates(database, judge, waiting.slice(next), room) : 0;
        const event = waiting[next];
        if (states === 0 && event && (await judge.readRoom(event, room))) return this.#routeRoom(roomId);
        if (states === 0 && event && !(await this.#routeEvent(event, room))) elsewhere.push(event.seq);
        // Only state changes what is known of a room.
        if (event?.stateKey !== null) room = null;
        next += Math.max(1, states);
      }
      if (waiting.length < batch) return;
    }
  }

  /** Returns false where another process carries out the command; it is looked for again when that one is gone. */
  async #routeEvent(event: PendingEvent, room: RoomContext): Promise<boolean> {
    const { database, judge, leases, unsealing } = this.#parts;
    const opened = await unsealing.open(event, room);
    const isCommand = judge.isCommand(opened.event);
    const isShared = leases.proof(event.roomId) !== undefined;
    if (isCommand && isShared && !(await beginCommand(database, event.seq, leases.session))) return false;
    const settled = this.#settle(opened, room);
    if (!isCommand) await settled;
    else await this.#awaitSome(event, isShared ? this.#noteFailure(event, settled) : settled);
    return true;
  }

  async #noteFailure({ seq }: PendingEvent, settled: Promise<void>): Promise<void> {
    try {
      await settled;
    } catch (error) {
      this.#failed.add(seq);
      throw error;
    }
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

  async #settle({ event, effects: encryption }: Opened, room: RoomContext): Promise<void> {
    const membership = event.type === "m.room.member" ? readMember(event.content)?.membership : undefined;
    let effects: Effects;
    let settled: Settled = { woken: [], queued: undefined };
    try {
      if (membership === "join") await this.#hydrate(event);
      effects = { ...(await this.#parts.judge.judge(event, room)), ...encryption };
      settled = await settle(this.#parts.database, event, effects);
      this.#setAside.forget(event);
    } catch (error) {
      effects = await this.#setAside.countFailure(event, room, error);
    }
    this.#tell(event, room, { membership, effects, ...settled });
  }

  /** Reads what was before an agent that joins. The join is projected by that; only a first one has something to read. */
  async #hydrate(event: PendingEvent): Promise<void> {
    const { events, judge, past, rooms, serverName } = this.#parts;
    const member = event.stateKey as UserId;
    const isAgent = agentName(member, serverName) !== undefined;
    if (!isAgent || (await rooms.membership(event.roomId, member)) === "join") return;
    const { kindOf, ignores } = judge;
    const isCommand: (typeof judge)["isCommand"] = (said) => judge.isCommand(said);
    await hydrate({ ...this.#parts, readings: past.readings, kindOf, isCommand, ignores }, event, member).then(
      () => {
        this.route([event.roomId]);
        past.nudge();
      },
      async (error: unknown) => {
        // A person who has left since may not be let in to read, and needs not.
        if (!(error instanceof HomeserverError && error.isFinal && (await events.isOutdated(event)))) throw error;
      },
    );
  }

  /** Tells everybody who goes on with the effects of an event. */
  #tell(event: PendingEvent, room: RoomContext, { membership, effects, woken, queued }: Routed): void {
    const { judge, onEcho, onGuest, onMedia, onMembership, onOutbox, onQueued, onRedacted, onSealed, onWoken } =
      this.#parts;
    const member = event.stateKey as UserId;
    if (membership !== undefined && judge.kindOf(member) !== "human") onMembership(event.roomId, member, membership);
    else if (membership !== undefined && room.kind !== "chat") onGuest();
    if (effects.echoOf !== undefined) onEcho(effects.echoOf);
    if (queued) onQueued(queued);
    const others = (effects.outbox ?? []).filter((draft) => !queued?.drafts.includes(draft));
    if (others.length > 0) onOutbox(others.map(({ roomId }) => roomId));
    if (effects.sealed) onSealed();
    if (effects.media?.state === "pending") onMedia();
    if (event.type === "m.room.redaction" || event.isOvertaken) onRedacted();
    if (woken.length > 0) onWoken(woken);
  }
}
