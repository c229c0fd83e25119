import { describe, expect, it } from "vitest";
import { openLeases } from "../../../src/adapters/database/leases.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import type { MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Machines } from "../../../src/domain/crypto/machines.ts";
import { CryptoMachines } from "../../../src/domain/tables/crypto-machines.ts";
import { Events, type IncomingEvent } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { SealedEvents } from "../../../src/domain/tables/sealed-events.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Router } from "../../../src/edges/routing/router.ts";
import { SealedKeeper } from "../../../src/edges/routing/sealed-keeper.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { Unsealing } from "../../../src/edges/routing/unsealing.ts";
import { sensor as messages } from "../../../src/edges/sensors/message.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { KeyServer } from "../../support/key-server.ts";
import { mindOf } from "../../support/mind.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, incoming, newEventId, newKey, newRoom, newUser, rightsOf, setMember } from "../../support/rows.ts";
import { SecretDevice } from "../../support/secret-device.ts";

const botUserId = "@clevernet:test" as UserId;
const encryption = { algorithm: "m.megolm.v1.aes-sha2" };

onEachDatabase((database) => {
  /** An encrypted room of an agent and of ann, as a process routes it. */
  const scene = async () => {
    const rights = await rightsOf(database(), { "@*:test": "chat" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const [events, outbox, sealed] = [new Events(database()), new Outbox(database()), new SealedEvents(database())];
    const judge = new Judge({
      ...mind,
      events,
      outbox,
      approvals: new Approvals(mind),
      reactions: { react: async () => false, reply: async () => false } as never,
      sensors: [messages],
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
      commands: { isOne: () => false, handle: async () => undefined },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      readMissed: async () => {},
      serverName: "test",
      botUserId,
    });
    const server = new KeyServer();
    const leases = openLeases({
      database: { ...database(), location: { dir: "" } },
      notifier: nobodyElse,
      name: "one",
      clock: systemClock,
      log: silentLog,
    });
    const machines = new Machines({
      database: database(),
      client: server.client,
      log: silentLog,
      most: 200,
      session: "one",
      notifier: nobodyElse,
      clock: systemClock,
      onKeys: (keys) => keeper.keysCame(keys),
      onRenewed() {},
      onShared() {},
      onCommitted() {},
    });
    const router: Router = new Router({
      past: { nudge() {}, readings: {} as never },
      ...mind,
      database: database(),
      events,
      judge,
      leases,
      client: { botUserId } as MatrixClient,
      unsealing: new Unsealing({
        machines,
        sealed,
        serverName: "test",
        clock: systemClock,
        log: silentLog,
        onUnsealed() {},
      }),
      serverName: "test",
      log: silentLog,
      onOutbox() {},
      onEcho() {},
      onMedia() {},
      onSealed() {},
      onGuest() {},
      onRedacted() {},
      onMembership() {},
      tellOperators() {},
    });
    const keeper: SealedKeeper = new SealedKeeper({
      machines,
      sealed,
      events,
      devices: new CryptoMachines(database()),
      kindOf: judge.kindOf,
      outbox,
      rights,
      leases,
      clock: systemClock,
      log: silentLog,
      onReleased: (rooms) => router.route(rooms),
      onOutbox() {},
    });
    const [agent, roomId, ann] = [await addAgent(database()), newRoom(), newUser()];
    await machines.run(agent.userId, async () => {});
    const person = await SecretDevice.make(server, ann);
    for (const userId of [agent.userId, ann]) await setMember(database(), roomId, userId, "join");
    const route = async (...given: readonly IncomingEvent[]): Promise<EventId> => {
      await events.store(given, "push");
      const last = given.at(-1)?.eventId ?? ("" as EventId);
      router.route([roomId]);
      await eventually(async () => (await rowOf(last)).routed, { within: 60_000, what: `${last} to be routed` });
      return last;
    };
    const event = (fields: Partial<IncomingEvent>) => incoming({ roomId, sender: ann, sentAt: new Date(), ...fields });
    const state = { type: "m.room.encryption", stateKey: "", content: encryption };
    await route(event(state));
    /** Stores and routes what came with this ciphertext. */
    const receive = (content: Record<string, unknown>, fields: Partial<IncomingEvent> = {}) =>
      route(event({ type: "m.room.encrypted", content: content as never, ...fields }));
    const seal = (inner?: Parameters<SecretDevice["seal"]>[2], isFresh?: boolean) =>
      person.seal(roomId, [agent.userId, ann], inner, isFresh);
    const said = async () => {
      const rows = await database().sql<{ body: string }[]>`
        select content->>'body' as body from outbox where room_id = ${roomId} order by id`;
      return rows.map(({ body }) => body);
    };
    const wakes = async () => {
      const rows = await database().sql`select event_id from wakes where room_id = ${roomId}`;
      return rows.map(({ event_id }) => event_id);
    };
    const seen = async () => {
      const rows = await database().sql`
        select content->>'body' as body from events where room_id = ${roomId} and shown and type = 'm.room.message'
        order by position`;
      return rows.map(({ body }) => body);
    };
    /** Events have been waited for so long. */
    const age = (seconds: number) =>
      database().sql`update sealed_events set since = since - ${`${seconds} s`}::interval where room_id = ${roomId}`;
    const waiting = async () => {
      const [row] = await database().sql`select count(*)::int as n from sealed_events where room_id = ${roomId}`;
      return row?.n;
    };
    const end = async () => {
      await keeper.stop();
      await router.stop();
      await machines.close();
    };
    return {
      agent,
      roomId,
      ann,
      person,
      server,
      machines,
      keeper,
      sealed,
      route,
      event,
      receive,
      seal,
      said,
      wakes,
      seen,
      age,
      waiting,
      end,
    };
  };
  const rowOf = async (eventId: EventId) => {
    const [row] = await database().sql`
      select type, content, routed_at is not null as routed, shown from events where event_id = ${eventId}`;
    return row ?? {};
  };
  const stateOf = (roomId: RoomId) =>
    database().sql`
      select type, content::text from room_state where room_id = ${roomId}
      union all select user_id, membership from members where room_id = ${roomId} order by 1`;
  /** Megolm's own form, of a session that nobody has. */
  const forged = () => {
    const bytes = Buffer.concat([Buffer.from([3, 8, 0, 18, 32]), Buffer.alloc(32 + 8 + 64, 7)]);
    return {
      ...encryption,
      session_id: newKey(),
      ciphertext: bytes.toString("base64"),
    };
  };

  describe("an encrypted event that is no message for anybody", () => {
    const wrong: [string, (place: Awaited<ReturnType<typeof scene>>) => Promise<Partial<IncomingEvent>>][] = [
      ["whose ciphertext is no text", async () => ({ content: { ...forged(), ciphertext: 5 } })],
      ["of an unknown algorithm", async () => ({ content: { ...forged(), algorithm: "m.of.tomorrow" } })],
      ["of 60,000 bytes of rubbish", async () => ({ content: { ...forged(), ciphertext: "x".repeat(60_000) } })],
      ["without anything", async () => ({ content: {} })],
      [
        "that holds what was said in another room",
        async ({ person, agent, ann }) => ({
          content: (await person.seal(newRoom(), [agent.userId, ann])) as never,
        }),
      ],
      [
        "that holds what somebody else said",
        async ({ seal }) => ({ content: (await seal()) as never, sender: newUser() }),
      ],
      [
        "that holds a membership",
        async ({ seal }) => ({
          content: (await seal({ type: "m.room.member", content: { membership: "ban" } })) as never,
        }),
      ],
      [
        "that holds a name of the room",
        async ({ seal }) => ({ content: (await seal({ type: "m.room.name", content: { name: "mine" } })) as never }),
      ],
      [
        "that holds power",
        async ({ seal, ann }) => ({
          content: (await seal({ type: "m.room.power_levels", content: { users: { [ann]: 100 } } })) as never,
        }),
      ],
      [
        "that holds another encryption",
        async ({ seal }) => ({
          content: (await seal({ type: "m.room.encryption", content: { algorithm: "m.none" } })) as never,
        }),
      ],
      ["that came as state", async ({ seal }) => ({ content: (await seal()) as never, stateKey: "" })],
    ];

    it.each(wrong)("%s changes nothing, wakes nobody and is answered by nothing", async (_name, make) => {
      const place = await scene();
      // The agent has the key: it is refused for what it is.
      await place.receive(await place.seal());
      const before = [await stateOf(place.roomId), await place.wakes(), await place.seen()];
      const id = await place.receive({}, { sender: place.ann, ...(await make(place)) });
      await place.age(3_600);
      place.keeper.start();
      await place.receive(await place.seal({ content: { msgtype: "m.notice", body: "behind it" } }));
      expect((await rowOf(id)).type).toBe("m.room.encrypted");
      expect([await stateOf(place.roomId), await place.wakes()]).toEqual(before.slice(0, 2));
      expect(await place.seen()).toEqual(["hello", "behind it"]);
      expect((await place.said()).length).toBeLessThanOrEqual(1);
      await place.end();
    });

    it("is told of three times in a while, however many sessions there are", async () => {
      const place = await scene();
      for (let n = 0; n < 20; n++) await place.receive(forged());
      await place.age(3_600);
      place.keeper.start();
      await expect.poll(() => place.said()).not.toEqual([]);
      await place.keeper.stop();
      expect(await place.said()).toEqual(Array(3).fill(expect.stringContaining("its key has not reached me")));
      await place.end();
    });
  });

  describe("what was said once", () => {
    const again: [string, (ciphertext: string) => string][] = [
      ["as it was", (ciphertext) => ciphertext],
      ["written in another way", (ciphertext) => `${ciphertext}${"=".repeat((4 - (ciphertext.length % 4)) % 4)}`],
    ];

    it.each(again)("is not said again by another event, %s", async (_how, change) => {
      const place = await scene();
      // Of a length at which there are two ways to write it.
      const bodies = ["1", "12", "123", "a longer one", "a longer one still"];
      for (const body of bodies) {
        const content = await place.seal({ content: { msgtype: "m.text", body } });
        await place.receive(content);
        await place.receive({ ...content, ciphertext: change(String(content.ciphertext)) });
      }
      expect(await place.seen()).toEqual(bodies);
      expect(await place.wakes()).toHaveLength(bodies.length);
      await place.end();
    });

    it("is not said again after it was redacted", async () => {
      const place = await scene();
      const content = await place.seal();
      const id = await place.receive(content);
      await place.route(place.event({ type: "m.room.redaction", redacts: id, content: {} }));
      await place.receive(content);
      expect(await place.seen()).not.toContain("hello");
      expect(await place.wakes()).toEqual([id]);
      await place.end();
    });
  });

  it("somebody else's edit changes nothing", async () => {
    const place = await scene();
    const id = await place.receive(await place.seal());
    const ben = await SecretDevice.make(place.server, newUser());
    await setMember(database(), place.roomId, ben.userId, "join");
    const content = {
      msgtype: "m.text",
      body: "* bad",
      "m.new_content": { msgtype: "m.text", body: "bad" },
      "m.relates_to": { rel_type: "m.replace", event_id: id },
    };
    await place.receive(await ben.seal(place.roomId, [place.agent.userId, place.ann], { content }), {
      sender: ben.userId,
    });
    expect((await rowOf(id)).content).toMatchObject({ body: "hello" });
    expect(await place.wakes()).toEqual([id]);
    await place.end();
  });

  it("a message with a character that no text may have is told of, as one in plain text is", async () => {
    const place = await scene();
    const id = await place.receive(await place.seal({ content: { msgtype: "m.text", body: "a\0b" } }));
    expect(await place.said()).toEqual([expect.stringContaining("something in it is broken")]);
    expect(await place.wakes()).toEqual([]);
    expect(JSON.stringify(await rowOf(id))).not.toContain("\\u0000");
    await place.end();
  });

  it("a message that mentions 1,000 users wakes whom it mentions, once", async () => {
    const place = await scene();
    await setMember(database(), place.roomId, newUser(), "join");
    const others = Array.from({ length: 1_000 }, newUser);
    const mentions = { user_ids: [place.agent.userId, ...others, place.agent.userId] };
    const id = await place.receive(
      await place.seal({ content: { msgtype: "m.text", body: "all of you", "m.mentions": mentions } }),
    );
    expect(await place.wakes()).toEqual([id]);
    await place.end();
  });

  describe("an event that waits for its key", () => {
    /** Something is said whose key does not come yet; `come` brings it. */
    const late = async (place: Awaited<ReturnType<typeof scene>>, content: Record<string, unknown>) => {
      const release = place.server.keep();
      const id = await place.receive(await place.seal({ content }, true));
      expect(await place.waiting()).toBe(1);
      const come = async () => {
        release();
        await place.machines.run(place.agent.userId, (machine) => machine.pull());
        await eventually(async () => (await place.waiting()) === 0, { what: "nothing to wait" });
      };
      return { id, come };
    };

    it("enters history at its place an hour later, and is answered", async () => {
      const place = await scene();
      const { id, come } = await late(place, { msgtype: "m.text", body: "first" });
      await place.route(place.event({ content: { msgtype: "m.notice", body: "second" } }));
      expect(await place.seen()).toEqual(["second"]);
      await place.age(3_600);
      await come();
      expect(await place.seen()).toEqual(["first", "second"]);
      expect(await place.wakes()).toEqual([id]);
      await place.end();
    });

    it("appears nowhere if it was redacted meanwhile", async () => {
      const place = await scene();
      const { id, come } = await late(place, { msgtype: "m.text", body: "a secret" });
      await place.route(place.event({ type: "m.room.redaction", redacts: id, content: {} }));
      await come();
      expect(await rowOf(id)).toMatchObject({ content: {}, routed: true });
      expect([await place.seen(), await place.wakes(), await place.said()]).toEqual([[], [], []]);
      await place.end();
    });

    it("appears nowhere if it edits what was redacted meanwhile", async () => {
      const place = await scene();
      const original = await place.receive(await place.seal());
      const { id, come } = await late(place, {
        msgtype: "m.text",
        body: "* a secret",
        "m.new_content": { msgtype: "m.text", body: "a secret" },
        "m.relates_to": { rel_type: "m.replace", event_id: original },
      });
      await place.route(place.event({ type: "m.room.redaction", redacts: original, content: {} }));
      await come();
      expect(JSON.stringify([await rowOf(id), await rowOf(original)])).not.toContain("a secret");
      await place.end();
    });

    it("has its notice given once, also where the process starts anew", async () => {
      const place = await scene();
      await late(place, { msgtype: "m.text", body: "first" });
      await place.age(11);
      place.keeper.start();
      await expect.poll(() => place.said()).toHaveLength(1);
      await place.end();
      expect(await place.said()).toHaveLength(1);
    });
  });

  it("250 events that wait are told of three times, and read when their keys come", async () => {
    const place = await scene();
    const release = place.server.keep();
    const contents = [];
    for (let n = 0; n < 250; n++) {
      const content = { msgtype: "m.notice", body: `${n}` };
      contents.push(await place.seal({ content }, n % 25 === 0));
    }
    const events = contents.map((content) =>
      place.event({ type: "m.room.encrypted", content: content as never, eventId: newEventId() }),
    );
    await place.route(...events);
    expect(await place.waiting()).toBe(250);
    await place.age(3_600);
    place.keeper.start();
    await expect.poll(() => place.said()).toHaveLength(3);
    release();
    await place.machines.run(place.agent.userId, (machine) => machine.pull());
    await eventually(async () => (await place.waiting()) === 0, { within: 60_000, what: "nothing to wait" });
    expect(await place.seen()).toEqual(contents.map((_, n) => `${n}`));
    expect(await place.said()).toHaveLength(3);
    await place.end();
  }, 120_000);
});
