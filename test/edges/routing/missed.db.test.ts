import { describe, expect, it } from "vitest";
import { HomeserverError } from "../../../src/adapters/matrix/client.ts";
import { type Clock, systemClock } from "../../../src/base/lib/clock.ts";
import { RetryError } from "../../../src/base/lib/errors.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { JoinRules } from "../../../src/domain/tables/join-rules.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Reconciler, type ReconcilerParts } from "../../../src/edges/routing/reconcile.ts";
import { onEachDatabase } from "../../support/database.ts";
import { type FixedClock, fixedClock } from "../../support/fixed-clock.ts";
import { addAgent, incoming, newEventId, newRoom, newUser, setMember } from "../../support/rows.ts";

/** A homeserver with one room, whose tokens are the numbers of events before them. */
class Timeline {
  readonly botUserId = newUser();
  readonly events: EventId[] = [];
  readonly #roomId: RoomId;
  readonly #sender = newUser();
  /** Events of the room's state that every answer to a sync repeats. */
  readonly state: EventId[] = [];
  /** True if the room is new to the user: a sync tells its end, whatever of that was before the token. */
  isNewlyJoined = false;
  /** Number of answers to a sync. */
  syncs = 0;
  /** Requests until it breaks down. */
  patience = Number.POSITIVE_INFINITY;

  constructor(roomId: RoomId) {
    this.#roomId = roomId;
  }

  add(count: number): EventId[] {
    const added = Array.from({ length: count }, newEventId);
    this.events.push(...added);
    return added;
  }

  async sync(_user: UserId, since = "0") {
    this.syncs++;
    const timeline = {
      events: this.#from(this.events.length - 50, 50),
      limited: this.isNewlyJoined || this.events.length - Number(since) > 50,
    };
    const state = { events: this.state.map((id) => this.#event(id)) };
    return { next_batch: String(this.events.length), rooms: { join: { [this.#roomId]: { state, timeline } } } };
  }

  async request(_method: string, _path: string, { query = {} }: { query?: Record<string, unknown> }) {
    if (this.patience-- <= 0) throw new HomeserverError("GET messages", { statusCode: 502 });
    const { dir, from = this.events.length, limit } = query;
    const at = Number(from);
    const end = dir === "f" ? Math.min(at + Number(limit), this.events.length) : Math.max(at - Number(limit), 0);
    const chunk = dir === "f" ? this.#from(at, end - at) : this.#from(end, at - end).toReversed();
    return { chunk, start: String(at), ...(end !== at && { end: String(end) }) };
  }

  #from(at: number, count: number): Record<string, unknown>[] {
    return this.events.slice(Math.max(0, at), Math.max(0, at) + count).map((id) => this.#event(id));
  }

  #event(id: EventId): Record<string, unknown> {
    const content = { msgtype: "m.text", body: id };
    return { event_id: id, type: "m.room.message", sender: this.#sender, origin_server_ts: 1, content };
  }
}

onEachDatabase((database) => {
  /** A room that an agent is in and has been swept in; what is pushed there, and what is stored of it, in order. */
  const scene = async (clock: Clock = systemClock) => {
    const roomId = newRoom();
    const agent = await addAgent(database());
    await setMember(database(), roomId, agent.userId, "join");
    const homeserver = new Timeline(roomId);
    const events = new Events(database());
    const directory = new AgentDirectory(database(), systemClock, silentLog, { onChanged() {}, onRefused() {} });
    await directory.table.markRegistered(agent.name);
    const stored: string[] = [];
    const reconciler = new Reconciler({
      client: homeserver,
      directory,
      events,
      rooms: new Rooms(database()),
      joinRules: new JoinRules(database()),
      maySweep: async () => true,
      clock,
      log: silentLog,
      leases: { holds: (id: string) => id === agent.userId },
      onStored: (rooms: readonly RoomId[]) => stored.push(...rooms),
      onFound() {},
    } as unknown as ReconcilerParts);
    const push = (ids: readonly EventId[]) =>
      events.store(
        ids.map((eventId) => incoming({ roomId, eventId })),
        "push",
      );
    await push(homeserver.add(3));
    const sweep = () => reconciler.sweepUser(agent.userId, roomId);
    const known = async () =>
      (
        await database().sql<{ id: EventId }[]>`
          select event_id as id from events where room_id = ${roomId} and type = 'm.room.message' order by position, seq`
      ).map(({ id }) => id);
    await sweep();
    return { roomId, agent, homeserver, push, sweep, known, stored, reconciler };
  };

  describe("a sweep finds, in order", () => {
    it.each([
      [40, 0],
      [140, 5],
      [140, 160],
      [260, 260],
      [3_500, 0],
      [6_500, 120],
    ])("%i forgotten events, before %i newer ones that were pushed", async (forgotten, pushed) => {
      const { homeserver, push, sweep, known, roomId, stored } = await scene();
      homeserver.add(forgotten);
      await push(homeserver.add(pushed));
      await sweep();
      expect(await known()).toEqual(homeserver.events);
      expect(stored).toEqual([roomId]);
    });

    it.each([
      [140, 5, 20],
      [30, 15, 30],
      [260, 120, 49],
    ])("%i forgotten events, %i that were pushed, and %i that were forgotten", async (forgotten, pushed, last) => {
      const { homeserver, push, sweep, known } = await scene();
      homeserver.add(forgotten);
      await push(homeserver.add(pushed));
      homeserver.add(last);
      await sweep();
      expect(await known()).toEqual(homeserver.events);
    });

    it.each([120, 20])("%i forgotten events behind a state that is known", async (forgotten) => {
      const { homeserver, sweep, known } = await scene();
      homeserver.state.push(homeserver.events[0] as EventId);
      homeserver.add(forgotten);
      await sweep();
      expect(await known()).toEqual(homeserver.events);
    });

    it("in a room that is new, behind what was there before", async () => {
      const { homeserver, sweep, known } = await scene();
      homeserver.isNewlyJoined = true;
      homeserver.add(11);
      await sweep();
      expect(await known()).toEqual(homeserver.events);
    });

    it("what was forgotten in several places", async () => {
      const { homeserver, push, sweep, known } = await scene();
      for (const count of [90, 7, 300, 1]) {
        homeserver.add(count);
        await push(homeserver.add(count + 3));
      }
      await sweep();
      expect(await known()).toEqual(homeserver.events);
    });
  });

  it("what a sweep has not found because the homeserver went away, the next one finds", async () => {
    const { homeserver, push, sweep, known } = await scene();
    homeserver.add(7_000);
    await push(homeserver.add(10));
    homeserver.patience = 45;
    await expect(sweep()).rejects.toThrow("502");
    homeserver.patience = Number.POSITIVE_INFINITY;
    await sweep();
    expect(await known()).toEqual(homeserver.events);
  });

  it("the bot, who cannot sync, reads on from where it has read", async () => {
    const { homeserver, push, known, roomId, reconciler } = await scene();
    const sweep = () => reconciler.sweepUser(homeserver.botUserId, roomId);
    await sweep();
    homeserver.add(250);
    await push(homeserver.add(130));
    await sweep();
    expect(await known()).toEqual(homeserver.events);
    homeserver.patience = 2;
    homeserver.add(20);
    await sweep();
    expect(await known()).toEqual(homeserver.events);
  });

  describe("what is kept back after the homeserver's return", () => {
    const onceMoreAfterMs = 15_000;
    const waits = (clock: FixedClock) => clock.sleeps.filter((ms) => ms > 1_000);

    it("is found by one more sweep", async () => {
      const clock = fixedClock({ instantBelow: 1_000 });
      const { homeserver, known, reconciler } = await scene(clock);
      homeserver.add(2);
      reconciler.sweepOnceMore();
      reconciler.sweepOnceMore();
      clock.advance(onceMoreAfterMs);
      await expect.poll(known).toEqual(homeserver.events);
      await reconciler.stop();
      expect(waits(clock)).toEqual([onceMoreAfterMs]);
    });

    it("is found by another sweep after the last push of what it held back", async () => {
      const clock = fixedClock({ instantBelow: 1_000 });
      const { homeserver, known, reconciler } = await scene(clock);
      reconciler.sweepOnceMore();
      clock.advance(onceMoreAfterMs - 1_000);
      reconciler.sweepOnceMore();
      clock.advance(1_000);
      await expect.poll(() => waits(clock)).toEqual([onceMoreAfterMs, onceMoreAfterMs - 1_000]);
      await reconciler.sweep();
      homeserver.add(2);
      clock.advance(onceMoreAfterMs - 1_000);
      await expect.poll(known).toEqual(homeserver.events);
      await reconciler.stop();
    });
  });

  it("what an agent has missed since the start is read once for all of its rooms", async () => {
    const { agent, homeserver, known, reconciler, roomId } = await scene();
    homeserver.add(2);
    const before = homeserver.syncs;
    await Promise.all([newRoom(), newRoom(), roomId].map((room) => reconciler.readMissed(agent.userId, room)));
    expect(await known()).toEqual(homeserver.events);
    expect(homeserver.syncs).toBe(before + 1);
  });

  it("what the end of the process interrupts is to be read again: nothing has failed", async () => {
    const { agent, homeserver, roomId, reconciler } = await scene();
    homeserver.add(300);
    const read = expect(reconciler.readMissed(agent.userId, roomId)).rejects.toThrow(RetryError);
    await reconciler.stop();
    await read;
  });

  it("what was before the agent came is not stored", async () => {
    const { agent, homeserver, sweep, known, roomId } = await scene();
    const before = homeserver.add(4_000);
    const join = homeserver.add(1);
    await new Events(database()).store([incoming({ roomId, eventId: join[0] as EventId })], "push");
    const { position } = (await new Events(database()).find(join[0] as EventId)) ?? { position: 0 };
    await setMember(database(), roomId, agent.userId, "leave", position - 0.5);
    await setMember(database(), roomId, agent.userId, "join", position);
    const after = homeserver.add(70);
    await sweep();
    expect(await known()).toEqual([...homeserver.events.slice(0, 3), ...join, ...after]);
    expect(before).toHaveLength(4_000);
  });
});
