import { describe, expect, it, onTestFinished, vi } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Machines } from "../../../src/domain/crypto/machines.ts";
import { onEachDatabase } from "../../support/database.ts";
import { KeyServer } from "../../support/key-server.ts";
import { addAgent, newEventId, newRoom, newUser } from "../../support/rows.ts";
import { SecretDevice } from "../../support/secret-device.ts";

onEachDatabase((database) => {
  /** An agent and a person's devices of these names, in a room. */
  const scene = async (...names: readonly string[]) => {
    const server = new KeyServer();
    const machines = new Machines({
      database: database(),
      client: server.client,
      log: silentLog,
      most: 200,
      session: "one",
      notifier: nobodyElse,
      clock: systemClock,
      onKeys() {},
      onRenewed() {},
      onShared() {},
      onCommitted() {},
    });
    const [{ userId: agent }, ann, roomId] = [await addAgent(database()), newUser(), newRoom()];
    await machines.run(agent, async () => {});
    const devices: SecretDevice[] = [];
    for (const name of names) devices.push(await SecretDevice.make(server, ann, name));
    const readers: UserId[] = [agent, ann];
    const room = { roomId, readers, visibility: "shared", encryption: { algorithm: "m.megolm.v1.aes-sha2" } };
    const say = (body: string) =>
      machines.run(agent, (machine) =>
        machine.seal(room, { type: "m.room.message", content: { msgtype: "m.text", body } }),
      );
    const read = (content: unknown) => Promise.all(devices.map((device) => device.read(roomId, agent, content)));
    return { server, machines, agent, ann, devices, roomId, say, read };
  };

  const spoilt: [string, (key: Record<string, unknown>) => Record<string, unknown> | undefined][] = [
    ["no key", () => undefined],
    ["a key that it has not signed", ({ signatures: _, ...key }) => key],
    ["a key in place of its own", (key) => ({ ...key, key: "A".repeat(43) })],
    ["something that is no key", () => ({ key: 5 })],
  ];

  it.each(spoilt)(
    "a device whose claim gives %s is left out, and others are not; a moment later it is given the keys",
    async (_what, spoil) => {
      const { server, machines, say, read } = await scene("GOOD", "BAD");
      server.claimed = (deviceId, key) => (deviceId === "BAD" ? spoil(key) : key);
      const first = await say("first");
      expect(await read(first)).toEqual(["first", expect.stringContaining("unreadable")]);
      server.claimed = (_deviceId, key) => key;
      // The machine asks it again after a quarter of a minute, then after longer and longer.
      const now = performance.now.bind(performance);
      vi.spyOn(performance, "now").mockImplementation(() => now() + 16_000);
      onTestFinished(() => void vi.restoreAllMocks());
      const second = await say("second");
      expect(await read(second)).toEqual(["second", "second"]);
      await machines.close();
    },
  );

  describe("messages to a device", () => {
    it("of which 3,000 wait are taken page by page, and what is among them is used", async () => {
      const { server, machines, agent, ann, devices, roomId } = await scene("PERSON");
      const [device] = devices;
      const flood = (count: number, content: (n: number) => object) => {
        const as = { userId: newUser(), deviceId: "FLOOD" };
        const send = (n: number) =>
          server.client.request("PUT", `/_matrix/client/v3/sendToDevice/m.room.encrypted/${as.userId}${n}`, {
            as,
            body: { messages: { [agent]: { DEVICE: content(n) } } },
          });
        return Promise.all(Array.from({ length: count }, (_, n) => send(n)));
      };
      await flood(1_500, (n) => ({ algorithm: "m.olm.v1.curve25519-aes-sha2", sender_key: `${n}`, ciphertext: {} }));
      const content = await device?.seal(roomId, [agent, ann]);
      await flood(1_500, () => ({ algorithm: "m.megolm.v1.aes-sha2", ciphertext: "x".repeat(1_000) }));
      const syncs = () => server.asked.filter((what) => what === "GET sync").length;
      const before = syncs();
      await machines.run(agent, (machine) => machine.pull());
      expect(syncs() - before).toBe(32);
      const event = { eventId: newEventId(), roomId, sender: ann, sentAt: new Date(0), content } as never;
      const read = await machines.run(agent, (machine) => machine.unseal(event));
      expect(read).toMatchObject({ state: "read", content: { body: "hello" } });
      await machines.close();
    });

    it("of another form are passed over", async () => {
      const { server, machines, agent, ann, devices, roomId } = await scene("PERSON");
      const as = { userId: ann, deviceId: "PERSON" };
      const send = (type: string, content: unknown) =>
        server.client.request("PUT", `/_matrix/client/v3/sendToDevice/${type}/${newEventId()}`, {
          as,
          body: { messages: { [agent]: { DEVICE: content } } },
        });
      for (const content of [null, 5, "x", [], {}, { algorithm: 5 }, { ciphertext: null, sender_key: [] }])
        for (const type of ["m.room.encrypted", "m.room_key", "m.room_key.withheld", "m.forwarded_room_key", "m.dummy"])
          await send(type, content);
      const content = await devices[0]?.seal(roomId, [agent, ann]);
      await machines.run(agent, (machine) => machine.pull());
      const event = { eventId: newEventId(), roomId, sender: ann, sentAt: new Date(0), content } as never;
      expect(await machines.run(agent, (machine) => machine.unseal(event))).toMatchObject({ state: "read" });
      await machines.close();
    });
  });
});
