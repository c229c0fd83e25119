import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { type Notifier, nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { RetryError } from "../../../src/base/lib/errors.ts";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { findKeyDifference } from "../../../src/domain/crypto/identity.ts";
import type { RoomKey } from "../../../src/domain/crypto/machine.ts";
import { Machines } from "../../../src/domain/crypto/machines.ts";
import type { Unsealed } from "../../../src/domain/crypto/unseal.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { CryptoMachines } from "../../../src/domain/tables/crypto-machines.ts";
import { NotOwner } from "../../../src/domain/tables/crypto-rows.ts";
import { onEachDatabase } from "../../support/database.ts";
import { KeyServer } from "../../support/key-server.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newEventId, newRoom } from "../../support/rows.ts";

const log = pino({ level: "silent" });
const encryption = { algorithm: "m.megolm.v1.aes-sha2" };

type Parts = ConstructorParameters<typeof Machines>[0];
const deaf = { onKeys() {}, onRenewed() {}, onShared() {}, onCommitted() {} };
const alone = { log, most: 200, session: "one", notifier: nobodyElse, clock: systemClock };

/** Numbers that look random, the same for the same seed. */
const numbers = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return seed / 2_147_483_648;
};

onEachDatabase((database) => {
  const open = ({ client }: KeyServer, parts: Partial<Parts> = {}) =>
    new Machines({ ...alone, database: database(), client, ...deaf, ...parts });
  const room = (roomId: RoomId, readers: readonly UserId[]) => ({
    roomId,
    readers,
    visibility: "shared",
    encryption,
  });
  const pair = async () => {
    const [one, other] = await Promise.all([addAgent(database()), addAgent(database())]);
    return { one: one.userId, other: other.userId, roomId: newRoom() };
  };
  const say = (machines: Machines, from: UserId, to: ReturnType<typeof room>, body: string) =>
    machines.run(from, (machine) => machine.seal(to, { type: "m.room.message", content: { msgtype: "m.text", body } }));
  const read = (machines: Machines, as: UserId, from: UserId, roomId: RoomId, content: Record<string, unknown>) =>
    machines.run(as, async (machine): Promise<Unsealed> => {
      const event = { eventId: newEventId(), roomId, sender: from, sentAt: new Date(0), content } as never;
      const first = await machine.unseal(event);
      if (first.state === "read") return first;
      await machine.pull();
      return machine.unseal(event);
    });

  it("a machine reads what another has sealed, and itself too", async () => {
    const { one, other, roomId } = await pair();
    const machines = open(new KeyServer());
    await machines.run(other, async () => {});
    const sealed = await say(machines, one, room(roomId, [one, other]), "hello");
    expect(sealed.algorithm).toBe(encryption.algorithm);
    expect(JSON.stringify(sealed)).not.toContain("hello");
    for (const reader of [other, one]) {
      const found = await read(machines, reader, one, roomId, sealed);
      expect(found).toMatchObject({ state: "read", content: { body: "hello" } });
    }
    await machines.close();
  });

  it("its device is signed by an identity of the agent's own, made once", async () => {
    const { one } = await pair();
    const server = new KeyServer();
    for (let start = 0; start < 3; start++) {
      const machines = open(server);
      await machines.run(one, (machine) => machine.pull());
      await machines.close();
    }
    const made = server.asked.filter((what) => what === "POST keys/device_signing/upload");
    expect(made).toHaveLength(1);
    const [row] = await database().sql`select identity, published_at from crypto_machines where user_id = ${one}`;
    expect(row?.published_at).not.toBeNull();
    expect(Object.keys(row?.identity ?? {}).sort()).toEqual(["master", "selfSigning", "userSigning"]);
  });

  it("of an agent's keys it is told how those differ that people are given", async () => {
    const { one } = await pair();
    const server = new KeyServer();
    const machines = open(server);
    await machines.run(one, async () => {});
    const device = (await new CryptoMachines(database()).known()).find(({ userId }) => userId === one);
    if (!device) throw new Error("there is no device");
    const ask = (body: object) =>
      server.client.request("POST", "/_matrix/client/v3/keys/query", { as: { userId: one }, body: body as never });
    const answer = JSON.stringify(await ask({ device_keys: { [one]: [] } }));
    const [, key = ""] = /"curve25519:DEVICE":"(.{10})/.exec(answer) ?? [];
    const differs = (of: string) => findKeyDifference(device, JSON.parse(of));
    expect(differs(answer)).toBeUndefined();
    expect(differs("{}")).toBe("no device");
    expect(differs(answer.replaceAll(key, "AAAAAAAAAA"))).toBe("not signed");
    expect(differs(answer.replaceAll('"master_keys"', '"others"'))).toBe("another identity");
    await machines.close();
  });

  it("an event whose key has not come is sealed, and whoever waits hears of the key", async () => {
    const { one, other, roomId } = await pair();
    const keys: RoomKey[] = [];
    const machines = open(new KeyServer(), { onKeys: (came) => keys.push(...came) });
    await machines.run(other, async () => {});
    const sealed = await say(machines, one, room(roomId, [one, other]), "hello");
    const event = { eventId: newEventId(), roomId, sender: one, sentAt: new Date(0), content: sealed } as never;
    expect(await machines.run(other, (machine) => machine.unseal(event))).toEqual({
      state: "sealed",
      reason: "missing",
      sessionId: sealed.session_id,
    });
    keys.length = 0;
    await machines.run(other, (machine) => machine.pull());
    expect(keys).toContainEqual({ roomId, sessionId: sealed.session_id });
    await machines.close();
  });

  it.each([
    ["no ciphertext", { algorithm: encryption.algorithm }],
    ["another algorithm", { algorithm: "m.other", ciphertext: "a", session_id: "b" }],
    ["rubbish", { algorithm: encryption.algorithm, ciphertext: "x".repeat(60_000), session_id: "b", sender_key: "c" }],
    ["a ciphertext that is no text", { algorithm: encryption.algorithm, ciphertext: 5, session_id: "b" }],
  ])("%s is not read, and nothing waits for it unless a key could come", async (_name, content) => {
    const { one, other, roomId } = await pair();
    const machines = open(new KeyServer());
    const found = await read(machines, one, other, roomId, content);
    expect(found.state).not.toBe("read");
    await machines.close();
  });

  it.each(["m.room.member", "m.room.redaction", "m.room.encrypted", "org.other"])(
    "an event of the type %s inside of an encrypted one is not read",
    async (type) => {
      const { one, roomId } = await pair();
      const machines = open(new KeyServer());
      const sealed = await machines.run(one, (machine) => machine.seal(room(roomId, [one]), { type, content: {} }));
      expect(await read(machines, one, one, roomId, sealed)).toMatchObject({ state: "unreadable" });
      await machines.close();
    },
  );

  it.each(["sender", "room"])("a ciphertext that stands under another %s is not read by anybody", async (what) => {
    const { one, other, roomId } = await pair();
    const machines = open(new KeyServer());
    await machines.run(other, async () => {});
    const sealed = await say(machines, one, room(roomId, [one, other]), "hello");
    const { userId: third } = await addAgent(database());
    const [sender, place] = what === "sender" ? [third, roomId] : [one, newRoom()];
    for (const reader of [other, one])
      expect((await read(machines, reader, sender, place, sealed)).state).not.toBe("read");
    await machines.close();
  });

  it("whoever opens a device last has it: another owner writes nothing more until it opens it again", async () => {
    const { one, roomId } = await pair();
    const server = new KeyServer();
    const [first, second] = [open(server), open(server)];
    const late = await first.run(one, async (machine) => machine);
    await second.run(one, (machine) => machine.pull());
    const inner = { type: "m.room.message", content: { body: "late" } };
    await expect(late.seal(room(roomId, [one]), inner)).rejects.toThrow();
    expect(late.failure).toBeInstanceOf(NotOwner);
    // Asked as everybody asks, it takes the device over.
    expect(await say(first, one, room(roomId, [one]), "again")).toHaveProperty("ciphertext");
    await Promise.all([first.close(), second.close()]);
  });

  describe("two processes", () => {
    /** Processes that live, and hear each other. */
    const processes = async (server: KeyServer) => {
      const hearers: ((users: readonly string[] | undefined) => void)[] = [];
      const notifier: Notifier = {
        tell: (_topic, about) => void setImmediate(() => hearers.map((hear) => hear(about))),
        on: (_topic, hear) => hearers.push(hear),
        close: async () => {},
      };
      const start = async (name: string) => {
        await database().sql`
          insert into processes (name, session, until) values (${name}, ${name}, now() + interval '10 s')
          on conflict (name) do update set until = excluded.until`;
        return open(server, { session: name, notifier });
      };
      return Promise.all([start("first"), start("second")]);
    };

    it("who write by turns write all, and nothing with one key", async () => {
      const { one, other, roomId } = await pair();
      const both = await processes(new KeyServer());
      const place = room(roomId, [one, other]);
      await both[0].run(other, async () => {});
      const seen = new Set<unknown>();
      for (let n = 0; n < 6; n++) {
        const sealed = await Promise.all(both.map((machines, at) => say(machines, one, place, `${n} ${at}`)));
        for (const { ciphertext } of sealed) seen.add(ciphertext);
        for (const [at, content] of sealed.entries())
          expect(await read(both[at] ?? both[0], other, one, roomId, content)).toMatchObject({ state: "read" });
      }
      expect(seen.size).toBe(12);
      await Promise.all(both.map((machines) => machines.close()));
    });

    it("a device is not taken from one that lives and is at work with it", async () => {
      const { one } = await pair();
      const [first, second] = await processes(new KeyServer());
      const ended: string[] = [];
      const working = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      const long = first.run(one, async () => {
        begun.resolve();
        await working.promise;
        ended.push("first");
      });
      await begun.promise;
      const waiting = second.run(one, async () => ended.push("second"));
      setTimeout(() => working.resolve(), 300);
      await Promise.all([long, waiting]);
      expect(ended).toEqual(["first", "second"]);
      await Promise.all([first.close(), second.close()]);
    });
  });

  it("no more than the limit are open, the longest unused closed first", async () => {
    const { one, other, roomId } = await pair();
    const machines = open(new KeyServer(), { most: 1 });
    const sealed = await say(machines, one, room(roomId, [one]), "hello");
    await machines.run(other, (machine) => machine.pull());
    expect(machines.size).toBe(1);
    expect(await read(machines, one, one, roomId, sealed)).toMatchObject({ state: "read" });
    expect(machines.size).toBe(1);
    await machines.close();
  });

  it("nothing of an erased agent's device stays in memory, nor comes back", async () => {
    const { one } = await pair();
    const agents = new Agents(database());
    const machines = open(new KeyServer());
    await machines.run(one, async () => {});
    const { name } = (await agents.all()).find(({ userId }) => userId === one) ?? { name: "" as AgentName };
    await agents.erase(name);
    await agents.remove(name);
    machines.forget(one);
    await eventually(() => machines.size === 0, { what: "the device to be closed" });
    await expect(machines.run(one, async () => {})).rejects.toThrow("is no agent");
    expect(await database().sql`select 1 from crypto_rows where user_id = ${one}`).toEqual([]);
    await machines.close();
  });

  it("ten thousand messages to a device are taken by pages, each stored before the next", async () => {
    const { one, other, roomId } = await pair();
    const server = new KeyServer();
    const machines = open(server);
    for (const userId of [one, other]) await machines.run(userId, (machine) => machine.pull());
    for (let n = 0; n < 10_000; n++) server.deliver(one, { sender: other, type: "m.dummy", content: { n } });
    const sealed = await say(machines, other, room(roomId, [one, other]), "at last");
    const before = server.asked.length;
    const stored: string[] = [];
    const { sql } = database();
    server.onSync = async () => {
      const [row] = await sql<{ since: string }[]>`select since from crypto_machines where user_id = ${one}`;
      stored.push(row?.since ?? "");
    };
    expect(await read(machines, one, other, roomId, sealed)).toMatchObject({ state: "read" });
    const syncs = server.asked.slice(before).filter((what) => what === "GET sync");
    expect(syncs).toHaveLength(102);
    expect(new Set(stored).size).toBeGreaterThan(100);
    await machines.close();
  });

  it("a write that fails at any moment ends the call and harms nothing: the next call does it", async () => {
    const { sql } = database();
    await sql
      .unsafe(`create sequence writes; create function fail_one() returns trigger language plpgsql as $$
      begin return null; end $$;
      create trigger fail_one before insert on crypto_rows for each statement execute function fail_one()`)
      .simple();
    const insist = async <Result>(job: () => Promise<Result>): Promise<Result> =>
      job().catch((error: unknown) => {
        expect(error).toBeInstanceOf(RetryError);
        return job();
      });
    try {
      for (let failsAt = 2; failsAt < 50; failsAt += 5) {
        await sql
          .unsafe(`create or replace function fail_one() returns trigger language plpgsql as $$
          begin if nextval('writes') = ${failsAt} then raise 'the disk is full'; end if; return null; end $$;
          alter sequence writes restart`)
          .simple();
        const { one, other, roomId } = await pair();
        const machines = open(new KeyServer());
        await insist(() => machines.run(other, async () => {}));
        const sealed = await insist(() => say(machines, one, room(roomId, [one, other]), "hello"));
        const found = await insist(() => read(machines, other, one, roomId, sealed));
        expect(found, `write ${failsAt} failed`).toMatchObject({ state: "read", content: { body: "hello" } });
        await machines.close();
      }
    } finally {
      await sql.unsafe("drop trigger fail_one on crypto_rows; drop function fail_one; drop sequence writes").simple();
    }
  });

  describe("a device whose memory is of no use", () => {
    /** An agent who has written once, with what is needed to go on; `keep` copies its memory as it is then. */
    const scene = async () => {
      const { one, other, roomId } = await pair();
      const server = new KeyServer();
      const whys: string[] = [];
      const openOnes = () => open(server, { onRenewed: (_user, _devices, why) => whys.push(why) });
      const machines = openOnes();
      await machines.run(other, async () => {});
      await say(machines, one, room(roomId, [one, other]), "before");
      const memory = await database().sql`select * from crypto_rows where user_id = ${one}`;
      const devices = async () => {
        const rows = await database().sql`
          select m.device_id as own, a.device_id as sends, m.identity from crypto_machines m
          join agents a on a.user_id = m.user_id where m.user_id = ${one}`;
        return rows[0];
      };
      const before = await devices();
      const master = server.masterOf(one);
      /** It is a new one, of the same identity, and is read. */
      const expectRenewed = async (ours: Machines) => {
        const speak = () => say(ours, one, room(roomId, [one, other]), "after");
        await expect(speak()).rejects.toBeInstanceOf(RetryError);
        const sealed = await speak();
        expect(await read(ours, other, one, roomId, sealed)).toMatchObject({ content: { body: "after" } });
        const now = await devices();
        expect(now?.own).not.toBe(before?.own);
        expect(now?.sends).toBe(now?.own);
        expect(now?.identity).toEqual(before?.identity);
        expect(server.masterOf(one)).toEqual(master);
      };
      return { one, other, roomId, server, machines, openOnes, memory, whys, expectRenewed };
    };

    it("is made anew under the old identity after a restore from a dump, which holds nothing of it", async () => {
      const { one, machines, openOnes, expectRenewed, whys } = await scene();
      await machines.close();
      await database().sql`delete from crypto_rows where user_id = ${one}`;
      const restored = openOnes();
      await expectRenewed(restored);
      expect(whys).toEqual(["the database does not remember it"]);
      await restored.close();
    });

    it("is made anew where the database was set back, and the homeserver has newer keys", async () => {
      const { one, other, server, machines, openOnes, memory, expectRenewed, whys } = await scene();
      /** So many sessions are begun with it that it makes new keys. */
      const claim = async () => {
        const body = { one_time_keys: { [one]: { DEVICE: "signed_curve25519" } } };
        for (let n = 0; n < 30; n++)
          await server.client.request("POST", "/_matrix/client/v3/keys/claim", { as: { userId: other }, body });
      };
      await claim();
      await machines.run(one, (machine) => machine.pull());
      await machines.close();
      await database().sql`delete from crypto_rows where user_id = ${one}`;
      await database().sql`insert into crypto_rows ${database().sql(memory as never)}`;
      await claim();
      const setBack = openOnes();
      await expectRenewed(setBack);
      expect(whys).toEqual(["the database was set back"]);
      await setBack.close();
    });

    it("is made anew where the homeserver had forgotten it, and not twice within an hour", async () => {
      const { one, machines, expectRenewed, whys } = await scene();
      machines.lost({ userId: one, deviceId: "DEVICE" });
      await expectRenewed(machines);
      const [row] = await database().sql`select device_id from crypto_machines where user_id = ${one}`;
      machines.lost({ userId: one, deviceId: row?.device_id });
      await expect(machines.run(one, async () => {})).rejects.toThrow("not made anew again so soon");
      await machines.renew(one);
      await machines.run(one, async () => {});
      expect(whys).toHaveLength(2);
      await machines.close();
    });

    it("has its identity again where somebody else has made another one", async () => {
      const { one, server, machines, expectRenewed } = await scene();
      const body = { master_key: { keys: { "ed25519:x": "x" } } };
      const as = { userId: one };
      await server.client.request("POST", "/_matrix/client/v3/keys/device_signing/upload", { as, body });
      machines.lost({ userId: one, deviceId: "DEVICE" });
      await expectRenewed(machines);
      await machines.close();
    });

    it("is made anew where its store is damaged", async () => {
      const { one, machines, openOnes, expectRenewed } = await scene();
      await machines.close();
      await database().sql`update crypto_rows set value = '"rubbish"' where user_id = ${one} and store = 'crypto/core'`;
      const damaged = openOnes();
      await expectRenewed(damaged);
      await damaged.close();
    });
  });

  it.each([1, 2, 3])(
    "two machines that are closed and opened at random moments read all that they say to each other (seed %i)",
    async (seed) => {
      const { one, other, roomId } = await pair();
      const server = new KeyServer();
      const random = numbers(seed);
      let machines = open(server);
      const waiting: { from: UserId; to: UserId; body: string; sealed: Record<string, unknown> }[] = [];
      const seen = new Set<string>();
      await machines.run(one, async () => {});
      await machines.run(other, async () => {});
      for (let n = 0; n < 60; n++) {
        const [from, to] = random() < 0.5 ? [one, other] : [other, one];
        const what = random();
        if (what < 0.4) {
          const sealed = await say(machines, from, room(roomId, [one, other]), `${n}`);
          const { session_id: session, ciphertext } = sealed;
          expect(seen.has(`${session} ${ciphertext}`)).toBe(false);
          seen.add(`${session} ${ciphertext}`);
          waiting.push({ from, to, body: `${n}`, sealed });
        } else if (what < 0.7) {
          const next = waiting.shift();
          if (!next) continue;
          const found = await read(machines, next.to, next.from, roomId, next.sealed);
          expect(found).toMatchObject({ state: "read", content: { body: next.body } });
        } else if (what < 0.85) await machines.run(from, (machine) => machine.pull());
        else {
          await machines.close();
          machines = open(server);
        }
      }
      for (const next of waiting)
        expect(await read(machines, next.to, next.from, roomId, next.sealed)).toMatchObject({ state: "read" });
      await machines.close();
    },
  );
});
