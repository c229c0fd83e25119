import { expect, it } from "vitest";
import type { EventId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Outbox, type OutboxDraft } from "../../../src/domain/tables/outbox.ts";
import { InHand } from "../../../src/edges/delivery/in-hand.ts";
import { onEachDatabase } from "../../support/database.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { newKey, newRoom, newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** Rows in one room, which this process is about to send. */
  const sending = async (count: number) => {
    const [roomId, sender] = [newRoom(), newUser()];
    const rows = Array.from(
      { length: count },
      (): OutboxDraft => ({ key: newKey(), roomId, sender, kind: "message", content: { body: "hi" } }),
    );
    const outbox = new Outbox(database());
    await outbox.add(rows);
    const clock = fixedClock({ instantBelow: 0 });
    const inHand = new InHand(outbox, clock, silentLog);
    for (const row of rows) inHand.put(row, "sending");
    const keys = rows.map(({ key }) => key);
    const events = () => Promise.all(keys.map((key) => outbox.eventOf(roomId, key)));
    return { roomId, keys, clock, inHand, events };
  };
  const eventIds = ["$a", "$b", "$c"] as EventId[];

  it("what has no echo within a second is written as sent, what has is not, and what is being sent is neither", async () => {
    const { roomId, keys, clock, inHand, events } = await sending(3);
    const [late = "", echoed = "", unsent = ""] = keys;
    inHand.forget(echoed);
    for (const [index, key] of [late, echoed].entries()) inHand.markSent(key, eventIds[index] as EventId);
    expect(inHand.sentIn(roomId)).toEqual([late]);
    expect(keys.map((key) => inHand.has(key))).toEqual([true, false, true]);
    expect(inHand.eventOf(late)).toBe("$a");
    clock.advance(900);
    expect(await events()).toEqual([undefined, undefined, undefined]);
    clock.advance(100);
    await expect.poll(events).toEqual(["$a", undefined, undefined]);
    await expect.poll(() => inHand.has(late)).toBe(false);
    inHand.drop(unsent);
    expect(inHand.has(unsent)).toBe(false);
  });

  it("what was sent is written at the end, and cannot be dropped before", async () => {
    const { keys, inHand, events } = await sending(2);
    const [sent = "", dropped = ""] = keys;
    inHand.markSent(sent, "$sent" as EventId);
    for (const key of keys) inHand.drop(key);
    expect([inHand.has(sent), inHand.has(dropped)]).toEqual([true, false]);
    await inHand.close();
    expect(await events()).toEqual(["$sent", undefined]);
  });
});
