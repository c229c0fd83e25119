import { describe, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { openLeases } from "../../../src/adapters/database/leases.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { HomeserverError, type MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { RetryError } from "../../../src/base/lib/errors.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events, type IncomingEvent } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { pendingIn } from "../../../src/domain/tables/pending.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Router } from "../../../src/edges/routing/router.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { addAgent, incoming, newKey, newRoom, newUser, rightsOf, setMember } from "../../support/rows.ts";

const botUserId = "@clevernet:test" as UserId;

onEachDatabase((database) => {
  /** A router as a process has it, in a room of an agent; `command` is what commands do. */
  const scene = async (command: (body: string) => Promise<void> = async () => {}, shared?: string) => {
    const rights = await rightsOf(database(), { "@*:test": "chat" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const events = new Events(database());
    const judge = new Judge({
      ...mind,
      events,
      outbox: new Outbox(database()),
      approvals: new Approvals(mind),
      reactions: { react: async () => false, reply: async () => false } as never,
      sensors: [],
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
      commands: {
        isOne: (body) => body.startsWith("!"),
        handle: async ({ message }) => {
          if (!message.body.startsWith("!")) return undefined;
          await command(message.body);
          return { outbox: [], wakes: [] };
        },
      },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      serverName: "test",
    });
    const told: string[] = [];
    let statements = 0;
    const counted: Database = {
      ...database(),
      run(statement, patience) {
        statements += 1;
        return database().run(statement, patience);
      },
    };
    const router = new Router({
      past: { nudge() {}, readings: {} as never },
      ...mind,
      database: counted,
      events,
      judge,
      leases: {
        ...openLeases({
          database: { ...database(), location: { dir: "" } },
          notifier: nobodyElse,
          name: "one",
          clock: systemClock,
          log: silentLog,
        }),
        ...(shared !== undefined && { session: shared, proof: () => ({ shard: 1, session: shared }) }),
      },
      client: { botUserId } as MatrixClient,
      unsealing: { open: async (event) => ({ event, effects: {} }) },
      serverName: "test",
      // An event that is tried again is so at once.
      clock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms === 2_000 ? 1 : ms, signal) },
      log: silentLog,
      onOutbox: () => {},
      onQueued: () => {},
      onEcho: () => {},
      onMedia: () => {},
      onSealed: () => {},
      onGuest: () => {},
      onRedacted: () => {},
      onMembership: () => {},
      tellOperators: (text) => told.push(text),
    });
    const [agent, roomId] = [await addAgent(database()), newRoom()];
    await setMember(database(), roomId, agent.userId, "join");
    const route = async (...given: readonly IncomingEvent[]) => {
      await events.store(given, "push");
      router.route([...new Set(given.map((one) => one.roomId))]);
    };
    const isRouted = async ({ eventId }: IncomingEvent) => {
      const [row] = await database()
        .sql`select routed_at is not null as routed, shown from events where event_id = ${eventId}`;
      return row?.routed === true && row.shown === true;
    };
    const says = (body: string) => incoming({ roomId, sender: newUser(), content: { msgtype: "m.text", body } });
    return { judge, mind, told, route, router, roomId, says, isRouted, statements: () => statements };
  };
  const asideOf = async (roomId: RoomId) => {
    const rows = await database().sql<{ reason: string; raw: string }[]>`
      select reason, convert_from(raw, 'utf8') as raw from quarantine where convert_from(raw, 'utf8') like ${`%"${roomId}"%`}`;
    return rows.map(({ reason, raw }) => ({ reason, event: JSON.parse(raw) }));
  };

  describe("a command whose room comes to another process", () => {
    it("is carried out by the process that has begun it, and by another when that one is gone", async () => {
      const [first, second] = [newKey(), newKey()];
      await database().sql`
        insert into processes (name, session, until) select s, s, now() + interval '12 seconds' from unnest(${[first, second]}::text[]) s`;
      const done: string[] = [];
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const one = await scene(async (body) => {
        done.push(`one ${body}`);
        begun.resolve();
        if (body === "!long") await ended.promise;
      }, first);
      const two = await scene(async (body) => void done.push(`two ${body}`), second);
      const long = one.says("!long");
      await one.route(long);
      await begun.promise;
      const behind = one.says("!behind");
      await two.route(behind);
      await expect.poll(() => one.isRouted(behind)).toBe(true);
      expect(done).toEqual(["one !long", "two !behind"]);
      await database().sql`delete from processes where session = ${first}`;
      two.router.route([one.roomId]);
      await expect.poll(() => done).toEqual(["one !long", "two !behind", "two !long"]);
      ended.resolve();
      await expect.poll(() => one.isRouted(long)).toBe(true);
      await Promise.all([one.router.stop(), two.router.stop()]);
    });

    it("is left to the other where it fails in the first", async () => {
      const [first, second] = [newKey(), newKey()];
      await database().sql`
        insert into processes (name, session, until) select s, s, now() + interval '12 seconds' from unnest(${[first, second]}::text[]) s`;
      const tried: string[] = [];
      const failing = async () => {
        tried.push("one");
        throw new RetryError("the database is away");
      };
      const one = await scene(failing, first);
      const two = await scene(async () => void tried.push("two"), second);
      const command = one.says("!command");
      await one.route(command);
      await expect.poll(() => tried.length).toBeGreaterThan(1);
      await one.router.stop();
      await expect
        .poll(() => {
          two.router.route([one.roomId]);
          return one.isRouted(command);
        })
        .toBe(true);
      expect(tried.at(-1)).toBe("two");
      await two.router.stop();
    });
  });

  describe("an event whose routing fails by a bug", () => {
    it("is settled after the fifth time, kept aside and told, and what comes behind it is routed", async () => {
      const tried: string[] = [];
      const { isRouted, roomId, route, router, says, told } = await scene(async (body) => {
        tried.push(body);
        if (body === "!poison") throw new TypeError("no such thing");
      });
      const [poison, next] = [says("!poison"), says("!next")];
      await route(poison, next);
      await expect.poll(() => isRouted(next)).toBe(true);
      expect(await isRouted(poison)).toBe(true);
      expect(tried).toEqual([...Array.from({ length: 5 }, () => "!poison"), "!next"]);
      expect(await asideOf(roomId)).toEqual([
        {
          reason: expect.stringContaining("no such thing"),
          event: expect.objectContaining({ event_id: poison.eventId }),
        },
      ]);
      expect(told).toEqual([expect.stringContaining("no such thing")]);
      const answers = await database().sql<{ body: string }[]>`
        select content->>'body' as body from outbox where room_id = ${roomId}`;
      expect(answers).toEqual([{ body: expect.stringContaining("given up") }]);
      await router.stop();
    });

    it("is as patient with a command that takes long", async () => {
      let tried = 0;
      const { isRouted, route, router, says, told } = await scene(async () => {
        tried += 1;
        await systemClock.sleep(600);
        throw new TypeError("no such thing");
      });
      const poison = says("!poison");
      await route(poison);
      await expect.poll(() => isRouted(poison)).toBe(true);
      expect([tried, told.length]).toEqual([5, 1]);
      await router.stop();
    });

    it("is tried for ever where something else is unwell", async () => {
      let tried = 0;
      const { isRouted, roomId, route, router, says, told } = await scene(async () => {
        tried += 1;
        if (tried <= 10) throw new RetryError("the disk is full");
        if (tried <= 20) throw new HomeserverError("asking", { statusCode: 502 });
      });
      const command = says("!command");
      await route(command);
      await expect.poll(() => isRouted(command)).toBe(true);
      expect(tried).toBe(21);
      expect([await asideOf(roomId), told]).toEqual([[], []]);
      await router.stop();
    });

    it("changes what is known of the room all the same", async () => {
      const { judge, isRouted, roomId, route, router } = await scene();
      const judged = judge.judge.bind(judge);
      judge.judge = (event, room) =>
        event.type === "m.room.member" ? Promise.reject(new TypeError("no such thing")) : judged(event, room);
      const ann = newUser();
      const state = { type: "m.room.member", stateKey: ann, sender: ann, content: { membership: "join" } };
      const [join, next] = [incoming({ roomId, ...state }), incoming({ roomId })];
      await route(join, next);
      await expect.poll(() => isRouted(next)).toBe(true);
      const [member] = await database()
        .sql`select membership from members where room_id = ${roomId} and user_id = ${ann}`;
      expect(member).toEqual({ membership: "join" });
      await router.stop();
    });
  });

  describe("a flood of states", () => {
    it("of a thousand people who join is routed in a few statements", async () => {
      const { isRouted, roomId, route, router, statements } = await scene();
      const joins = Array.from({ length: 1_000 }, () => {
        const userId = newUser();
        return incoming({
          roomId,
          type: "m.room.member",
          stateKey: userId,
          sender: userId,
          content: { membership: "join" },
        });
      });
      const last = incoming({ roomId });
      await route(...joins, last);
      await expect.poll(() => isRouted(last)).toBe(true);
      expect(statements()).toBeLessThan(60);
      const [found] = await database().sql`
        select count(*) as members, count(*) filter (where joined_position = position) as joined from members
        where room_id = ${roomId} and kind = 'human'`;
      expect(found).toEqual({ members: 1_000, joined: 1_000 });
      await router.stop();
    });

    const worlds = Array.from({ length: 10 }, (_, world) => world);
    it.each(worlds)(
      "comes to the same as each state routed by itself, whatever order they come in (world %i)",
      async (world) => {
        const people = Array.from({ length: 6 }, newUser);
        const kinds = ["m.room.name", "m.room.topic", "m.room.pinned_events", "org.example.state"];
        let seed = 7 + world;
        const random = (below: number) => {
          seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
          return seed % below;
        };
        const anyEvent = (roomId: RoomId, n: number): Partial<IncomingEvent> & { roomId: RoomId } => {
          const sender = people[random(people.length)] as UserId;
          // Some come late.
          const place = random(5) === 0 ? { position: 1_000_000 + random(300) } : { position: 1_000_000 + n };
          if (random(8) === 0) return { roomId, sender, ...place };
          if (random(3) === 0) {
            const type = kinds[random(kinds.length)] as string;
            return { roomId, sender, type, stateKey: "", content: { name: `${n}`, topic: `${n}` }, ...place };
          }
          const membership = ["join", "join", "leave", "invite", "none"][random(5)] ?? "join";
          const stateKey = people[random(people.length)] as UserId;
          return {
            roomId,
            sender,
            type: "m.room.member",
            stateKey,
            content: { membership, displayname: `${n}` },
            ...place,
          };
        };
        const known = async (roomId: RoomId) => {
          const { sql } = database();
          const [rooms, members, state, events] = await Promise.all([
            sql`select shown_events, shown_chars from rooms where room_id = ${roomId}`,
            sql`select user_id, membership, display_name, position, joined_position from members
            where room_id = ${roomId} and kind = 'human' order by user_id`,
            sql`select type, content, position from room_state where room_id = ${roomId} order by type`,
            sql`select shown from events where room_id = ${roomId} and type <> 'm.room.member' order by seq`,
          ]);
          return { rooms, members, state, events };
        };
        const [one, many] = [await scene(), await scene()];
        const fields = Array.from({ length: 150 }, (_, n) => anyEvent(one.roomId, n));
        await new Events(database()).store(
          fields.map((given) => incoming(given)),
          "push",
        );
        for (let waiting = await pendingIn(database(), one.roomId); waiting.length > 0; ) {
          for (const { room: _, ...event } of waiting)
            await settle(database(), event, await one.judge.judge(event, await one.mind.rooms.context(one.roomId)));
          waiting = await pendingIn(database(), one.roomId);
        }
        await many.route(...fields.map((given) => incoming({ ...given, roomId: many.roomId })));
        await expect.poll(() => pendingIn(database(), many.roomId)).toEqual([]);
        await many.router.stop();
        expect(await known(many.roomId)).toEqual(await known(one.roomId));
      },
    );
  });
});
