import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/base/lib/clock.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { type OwnProcess, sharedByProcesses } from "../../support/own-process.ts";
import { eventually } from "../../support/poll.ts";
import { newKey, newRoom } from "../../support/rows.ts";
import { postgresMissing } from "../../support/shared-postgres.ts";
import { lockTable } from "../../support/table-lock.ts";

describe.skipIf(postgresMissing)("leases", () => {
  const shared = sharedByProcesses();
  const startProcess = async (name: string, clock?: Clock): Promise<OwnProcess> => {
    const process = await shared.enter(name, clock);
    await process.leases.start();
    return process;
  };
  const rooms = Array.from({ length: 200 }, newRoom);
  const held = (...processes: OwnProcess[]) =>
    processes.map(({ leases }) => rooms.filter((room) => leases.holds(room)));
  const eachOnce = (...processes: OwnProcess[]) => {
    const all = held(...processes).flat();
    return all.length === rooms.length && new Set(all).size === rooms.length;
  };
  /** Waits until both have their part, and looks on as no room is ever held by both. */
  const shareOut = async (...processes: OwnProcess[]) => {
    let isTwice = false;
    const look = () => {
      const shares = held(...processes);
      isTwice ||= new Set(shares.flat()).size < shares.flat().length;
      return eachOnce(...processes) && shares.every((share) => share.length > rooms.length / 4);
    };
    await eventually(look, { what: "rooms to be shared" });
    expect(isTwice).toBe(false);
  };

  it("are all held by a process that is alone", async () => {
    const only = await startProcess("only");
    expect(held(only)).toEqual([rooms]);
    expect(only.leases.isAlone).toBe(true);
  });

  it("are shared evenly with a process that comes, no room is held by two, and given back when it goes", async () => {
    const first = await startProcess("first");
    const second = await startProcess("second");
    await shareOut(first, second);
    await second.leases.stop();
    expect(held(second)).toEqual([[]]);
    await eventually(() => eachOnce(first), { what: "rooms to be given back" });
  });

  it("of a process that cannot reach the database end for it before another takes them", async () => {
    const [first, second] = [await startProcess("first"), await startProcess("second")];
    await shareOut(first, second);
    await first.proxy.refuse();
    await eventually(() => held(first).flat().length === 0, { what: "the first to stop" });
    expect(eachOnce(second)).toBe(false);
    await eventually(() => eachOnce(second), { what: "its rooms to be taken over" });
  }, 40_000);

  it("pass at once to a process that starts under the name of one that died", async () => {
    const first = await startProcess("first");
    const second = await startProcess("second");
    await shareOut(first, second);
    const [before] = held(second);
    const again = await startProcess("second");
    expect(held(again)).toEqual([before]);
    await eventually(() => held(second).flat().length === 0, { what: "the one before to notice" });
  });

  it("tell whoever holds a room of work that came to another, and of what was missed", async () => {
    const [first, second] = [await startProcess("first"), await startProcess("second")];
    await shareOut(first, second);
    const [firsts = [], seconds = []] = held(first, second);
    const taken: string[] = [];
    await second.leases.serve(
      "events",
      (keys) => taken.push(...keys),
      async () => rooms,
    );
    expect(taken).toEqual(seconds);
    taken.length = 0;
    expect(first.leases.mine("events", rooms)).toEqual(firsts);
    await eventually(() => taken.length > 0, { what: "word" });
    expect([...new Set(taken)]).toEqual(seconds);
  });

  it("that have passed to another leave nothing to send", async () => {
    const first = await startProcess("first");
    const outbox = new Outbox(first.database);
    const [roomId] = rooms as [(typeof rooms)[number]];
    const draft = { key: newKey(), roomId, sender: "@agent:test" as never, kind: "message", content: {} } as const;
    await outbox.add([draft]);
    const proof = first.leases.proof(roomId);
    await first.database.sql`update shards set session = 'another'`;
    expect(await outbox.take(roomId, 10, proof)).toEqual([]);
    expect(await outbox.take(roomId, 10)).toHaveLength(1);
  });

  it("that could not be relied on while a renewal was under way are followed by a look for what came meanwhile", async () => {
    const clock = fixedClock({ instantBelow: 0 });
    const { database, leases } = await startProcess("slow", clock);
    let looks = 0;
    await leases.serve(
      "events",
      () => {},
      async () => {
        looks++;
        return [];
      },
    );
    const lock = await lockTable(database, "shards");
    clock.advance(3_000);
    await lock.reached();
    clock.advance(6_000);
    expect(leases.mine("events", rooms)).toEqual([]);
    await lock.release();
    await eventually(() => leases.mine("events", rooms).length === rooms.length, { what: "the leases to be renewed" });
    await eventually(() => looks === 2, { what: "a look" });
  });
});
