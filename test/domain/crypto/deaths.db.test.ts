import { expect, it, vi } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Machines } from "../../../src/domain/crypto/machines.ts";
import { CryptoRows } from "../../../src/domain/tables/crypto-rows.ts";
import { onEachDatabase } from "../../support/database.ts";
import { KeyServer } from "../../support/key-server.ts";
import { addAgent, newEventId, newRoom, newUser } from "../../support/rows.ts";
import { SecretDevice } from "../../support/secret-device.ts";

onEachDatabase((database) => {
  /** Takes and reads messages of new sessions; dies instead of the write of this number. */
  const readThrough = async (dies: number) => {
    const server = new KeyServer();
    const open = () =>
      new Machines({
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
    let machines = open();
    await machines.run(agent, async () => {});
    const device = await SecretDevice.make(server, ann);
    const readers: UserId[] = [agent, ann];
    let writes = 0;
    const write = CryptoRows.prototype.write;
    const spy = vi.spyOn(CryptoRows.prototype, "write").mockImplementation(function (this: CryptoRows, rows) {
      if (++writes === dies) return Promise.reject(new Error("it died"));
      return write.call(this, rows);
    });
    const outcomes: unknown[] = [];
    for (let n = 0; n < 3; n++) {
      const contents = [];
      for (let m = 0; m < 2; m++)
        contents.push(await device.seal(roomId, readers, { content: { msgtype: "m.text", body: `${n} ${m}` } }, true));
      const pull = () => machines.run(agent, (machine) => machine.pull());
      await pull().catch(async () => {
        await machines.close();
        machines = open();
        await pull();
      });
      for (const content of contents) {
        const event = { eventId: newEventId(), roomId, sender: ann, sentAt: new Date(0), content } as never;
        const read = await machines.run(agent, (machine) => machine.unseal(event));
        outcomes.push(read.state);
      }
    }
    spy.mockRestore();
    await machines.close();
    return { writes, outcomes };
  };

  it("a device that dies before any of its writes has every key when it lives again", async () => {
    const { writes } = await readThrough(0);
    const lost: unknown[] = [];
    for (let dies = 1; dies <= writes; dies++) {
      const { outcomes } = await readThrough(dies);
      if (outcomes.some((state) => state !== "read")) lost.push([dies, outcomes]);
    }
    expect(lost).toEqual([]);
  });
});
