import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { HomeserverError } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { PastReadings } from "../../../src/domain/tables/past-readings.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { hydrate } from "../../../src/edges/routing/hydrate.ts";
import { PastKeeper } from "../../../src/edges/routing/past-keeper.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newEventId, newRoom, newUser, storeEvent } from "../../support/rows.ts";

const now = Date.now();

interface Said {
  readonly id: EventId;
  readonly body?: string;
  readonly sender: UserId;
  readonly at: number;
  readonly replaces?: EventId;
}

/** A homeserver with one room, whose tokens are the numbers of events before them. */
class PastRoom {
  readonly events: Said[] = [];
  readonly ann = newUser();
  requests = 0;
  /** Thrown by the next request. */
  failure: HomeserverError | undefined;
  /** Done before the next page is given. */
  before: () => Promise<void> = async () => {};

  say(body: string | undefined, fields: Partial<Said> = {}): EventId {
    const id = newEventId();
    this.events.push({ id, sender: this.ann, at: now, ...(body !== undefined && { body }), ...fields });
    return id;
  }

  async roomState(): Promise<unknown[]> {
    return [];
  }

  async messagesBefore(_as: unknown, _room: RoomId, { from, limit }: { from?: string | undefined; limit: number }) {
    this.requests++;
    const failure = this.failure;
    this.failure = undefined;
    if (failure) throw failure;
    await this.before();
    const end = from === undefined ? this.events.length : Number(from);
    const start = Math.max(0, end - limit);
    const page = this.events.slice(start, end).toReversed();
    return { events: page.map((said) => this.#event(said)), next: start > 0 ? String(start) : undefined };
  }

  #event({ id, body, sender, at, replaces }: Said): Record<string, unknown> {
    const said = { msgtype: "m.text", body };
    const edit = { "m.new_content": said, "m.relates_to": { rel_type: "m.replace", event_id: replaces } };
    const content = body === undefined ? {} : replaces === undefined ? said : { ...said, ...edit };
    return { event_id: id, type: "m.room.message", sender, origin_server_ts: at, content };
  }
}

onEachDatabase((database) => {
  const scene = async ({ historyMessages = 1_000, historyDays = 365 } = {}) => {
    const [agent, roomId, room] = [await addAgent(database()), newRoom(), new PastRoom()];
    const events = new Events(database());
    const ignored = new Set<UserId>();
    const leases = {
      holds: () => leases.isHeld,
      isHeld: true,
      onGain(look: () => void) {
        leases.gain = look;
      },
      gain: () => {},
    };
    const kindOf = () => "human" as const;
    const ignores = async (userId: UserId) => ignored.has(userId);
    const parts = {
      readings: new PastReadings(database(), { historyMessages, historyDays }),
      client: room as never,
      events,
      kindOf,
      ignores,
      isCommand: ({ content }: { content: Record<string, unknown> }) => String(content.body).startsWith("!"),
      leases,
      clock: systemClock,
      log: silentLog,
    };
    const keeper = new PastKeeper(parts);
    const join = async (userId = agent.userId) => {
      const content = { membership: "join" };
      const event = await storeEvent(database(), {
        roomId,
        type: "m.room.member",
        sender: userId,
        stateKey: userId,
        content,
      });
      const joined = [...room.events];
      room.events.push({ id: event.eventId, sender: userId, at: now, body: "joins" });
      await hydrate({ ...parts, rooms: new Rooms(database()) }, event, userId);
      room.events.splice(0, room.events.length, ...joined);
      return event;
    };
    /** Reads all that is there of this room; other tests' readings have ended. */
    const readAll = async (pages = 50) => {
      for (let page = 0; page < pages; page++) if (!(await keeper.readPage())) return;
    };
    const remembered = async () => {
      const rows = await database().sql<{ text: string }[]>`
        select text from interactions where room_id = ${roomId} order by place`;
      return rows.map(({ text }) => text.replace(/^[^:]*: /, ""));
    };
    return { agent, roomId, room, events, ignored, join, keeper, leases, readAll, remembered };
  };
  const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `line ${from + n}`);

  describe("the past of a room", () => {
    it("is read into memory page by page, in its order, and nothing of it is shown or routed", async () => {
      const { join, readAll, remembered, room, roomId } = await scene();
      for (const line of lines(0, 320)) room.say(line);
      await join();
      // The join is among the 50 that are read at once.
      expect(await remembered()).toEqual(lines(271, 320));
      await readAll();
      expect(await remembered()).toEqual(lines(0, 320));
      const shown = await database().sql`select 1 from events where room_id = ${roomId} and shown`;
      expect(shown).toHaveLength(49);
      const waiting = await database().sql`
        select 1 from events where room_id = ${roomId} and routed_at is null and type = 'm.room.message'`;
      expect(waiting).toEqual([]);
      expect(await database().sql`select 1 from wakes where room_id = ${roomId}`).toEqual([]);
    });

    it("has the times and places of its events, and waits for vectors", async () => {
      const { join, readAll, room, roomId } = await scene();
      const at = now - 5 * 86_400_000;
      const first = room.say("the vault is in Bern", { at });
      for (const line of lines(0, 60)) room.say(line);
      const { position } = await join();
      await readAll();
      const [row] = await database().sql<
        { at: Date; place: number; kind: string; importance: number; isWaiting: boolean }[]
      >`
        select at, place, kind, importance, exists (select 1 from interactions_to_embed where interaction_id = id) as "isWaiting"
        from interactions where room_id = ${roomId} and event_id = ${first}`;
      expect(row).toMatchObject({ at: new Date(at), kind: "observation", isWaiting: true });
      expect(row?.importance).toBeCloseTo(0.3);
      expect(row?.place).toBeLessThan(position);
    });

    it("is read no further than the configured number and age", async () => {
      const few = await scene({ historyMessages: 120 });
      for (const line of lines(0, 300)) few.room.say(line);
      await few.join();
      await few.readAll();
      expect(await few.remembered()).toEqual(lines(180, 300));
      const young = await scene({ historyDays: 10 });
      for (const line of lines(0, 150)) young.room.say(line, { at: now - 11 * 86_400_000 });
      for (const line of lines(150, 210)) young.room.say(line);
      await young.join();
      await young.readAll();
      expect(await young.remembered()).toEqual(lines(150, 210));
      expect(await database().sql`select 1 from past_readings`).toEqual([]);
    });

    it("goes on where it was when the process dies, also between storing a page and moving on", async () => {
      const { join, keeper, readAll, remembered, room, roomId } = await scene();
      for (const line of lines(0, 260)) room.say(line);
      await join();
      const before = await database().sql`select * from past_readings where room_id = ${roomId}`;
      await keeper.readPage();
      await database().sql`delete from past_readings where room_id = ${roomId}`;
      await database().sql`insert into past_readings ${database().sql(before as never)}`;
      await database().sql`delete from interactions where room_id = ${roomId} and text like '%line 1_5'`;
      await readAll();
      expect(await remembered()).toEqual(lines(0, 260));
    });

    it("leaves out what is redacted, ignored or a command, and has messages as they were edited last", async () => {
      const { ignored, join, readAll, remembered, room } = await scene();
      const rude = newUser();
      ignored.add(rude);
      room.say("a word of the rude", { sender: rude });
      room.say(undefined);
      room.say("!recall the vault");
      const edited = room.say("the vault is in Bern");
      room.say("the vault is nowhere", { sender: newUser(), replaces: edited });
      room.say("the vault is in Basel", { replaces: edited });
      for (const line of lines(0, 50)) room.say(line);
      await join();
      await readAll();
      expect(await remembered()).toEqual(["the vault is in Basel", ...lines(0, 50)]);
    });

    it("leaves out commands among what is read at once", async () => {
      const { join, remembered, room } = await scene();
      for (const line of ["hello", "!forget gecko", "good bye"]) room.say(line);
      await join();
      expect(await remembered()).toEqual(["hello", "good bye"]);
    });

    it("leaves out what is redacted while its page is read", async () => {
      const { events, join, readAll, remembered, room, roomId } = await scene();
      const taken = room.say("the vault is in Bern");
      for (const line of lines(0, 50)) room.say(line);
      await join();
      room.before = async () => {
        const redaction = { roomId, type: "m.room.redaction", sender: room.ann, redacts: taken, content: {} };
        await storeEvent(database(), redaction);
      };
      await readAll();
      expect(await remembered()).toEqual(lines(0, 50));
      expect((await events.find(taken))?.content).toEqual({});
    });

    it("is not read again for another agent, nor after an absence", async () => {
      const { join, readAll, remembered, room } = await scene();
      for (const line of lines(0, 160)) room.say(line);
      await join();
      await readAll();
      const other = await addAgent(database());
      const before = room.requests;
      await join(other.userId);
      await readAll();
      expect(room.requests - before).toBeLessThanOrEqual(2);
      expect(await remembered()).toEqual(lines(0, 160));
    });

    it("is read on at once when a lease that was lost for a moment is ours again", async () => {
      const { join, keeper, leases, remembered, room } = await scene();
      for (const line of lines(0, 80)) room.say(line);
      await join();
      leases.isHeld = false;
      keeper.start();
      await sleep(100);
      leases.isHeld = true;
      leases.gain();
      await eventually(async () => (await remembered()).length === 80, { what: "the rest", within: 5_000 });
      await keeper.stop();
    });

    it("waits for a homeserver that does not answer, and ends where it refuses", async () => {
      const { join, keeper, readAll, remembered, room, roomId } = await scene();
      for (const line of lines(0, 260)) room.say(line);
      await join();
      room.failure = new HomeserverError("messages", {
        statusCode: 429,
        retryAfterMs: 60_000,
        errcode: "M_LIMIT_EXCEEDED",
      });
      await keeper.readPage();
      expect(await keeper.readPage()).toBe(false);
      await database().sql`update past_readings set due_at = now() where room_id = ${roomId}`;
      await keeper.readPage();
      room.failure = new HomeserverError("messages", { statusCode: 403, errcode: "M_FORBIDDEN" });
      await readAll();
      expect(await remembered()).toEqual(lines(111, 260));
      expect(await database().sql`select 1 from past_readings where room_id = ${roomId}`).toEqual([]);
    });
  });
});
