import { expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { settleProjections } from "../../../src/domain/tables/projection.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newRoom, settleEvent, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  const numbersOf = async (roomId: RoomId) =>
    (
      await database().sql<{ number: number | null }[]>`
        select number from events where room_id = ${roomId} order by seq`
    ).map(({ number }) => number);

  it("events that are shown are counted in their room, in whichever way they are routed", async () => {
    const [roomId, other] = [newRoom(), newRoom()];
    await settleEvent(database(), { roomId });
    await settleEvent(database(), { roomId: other });
    await settleEvent(database(), { roomId }, {});
    const states = [await storeEvent(database(), { roomId }), await storeEvent(database(), { roomId })];
    await settleProjections(database(), roomId, [
      { event: states[0] as never, effects: { shownChars: 0 } },
      { event: states[1] as never, effects: {} },
    ]);
    const old = [
      await storeEvent(database(), { roomId }, "history"),
      await storeEvent(database(), { roomId }, "history"),
    ];
    await new Rooms(database()).markAsHistory(
      roomId,
      old.map(({ eventId }) => eventId),
    );
    await settleEvent(database(), { roomId });
    expect(await numbersOf(roomId)).toEqual([1, null, 2, null, 3, 4, 5]);
    expect(await numbersOf(other)).toEqual([1]);
  });

  it("a number stays that of its event, whatever becomes of it", async () => {
    const roomId = newRoom();
    const events = new Events(database());
    const [first, second] = [await settleEvent(database(), { roomId }), await settleEvent(database(), { roomId })];
    await settle(database(), first, { shownChars: 5 });
    await events.applyEdit(first.eventId, { msgtype: "m.text", body: "other words" });
    await events.redact(second.eventId);
    await settleEvent(database(), { roomId });
    expect((await events.findNumbered(roomId, 1))?.eventId).toBe(first.eventId);
    expect((await events.findNumbered(roomId, 2))?.eventId).toBe(second.eventId);
    expect(await numbersOf(roomId)).toEqual([1, 2, 3]);
  });
});
