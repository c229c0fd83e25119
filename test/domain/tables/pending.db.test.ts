import { beforeEach, expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import type { IncomingEvent } from "../../../src/domain/tables/events.ts";
import { pendingIn, storePushed } from "../../../src/domain/tables/pending.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, incoming, newRoom, newUser, setMember, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  let roomId: RoomId;
  beforeEach(() => {
    roomId = newRoom();
  });
  const push = (...events: IncomingEvent[]) => storePushed(database(), events);

  it("what is pushed is handed back as it waits, with what is known of each room before it", async () => {
    const other = newRoom();
    for (const room of [roomId, other]) await setMember(database(), room, newUser(), "join");
    await setMember(database(), other, (await addAgent(database())).userId, "join");
    const fresh = await push(incoming({ roomId }), incoming({ roomId: other }), incoming({ roomId, stateKey: "" }));
    expect(fresh).toEqual([
      { roomId, waiting: await pendingIn(database(), roomId) },
      { roomId: other, waiting: await pendingIn(database(), other) },
    ]);
    const agents = fresh.map(({ waiting }) => waiting?.map(({ room }) => room?.agents.length));
    expect(agents).toEqual([[0, undefined], [1]]);
  });

  it("of what is known already only the room is named: nobody may have been told of it", async () => {
    const [known, fresh] = [await storeEvent(database(), { roomId }), incoming({ roomId })];
    await settle(database(), known, {});
    const again = { ...incoming({ roomId }), eventId: known.eventId };
    expect(await push(again)).toEqual([{ roomId }]);
    expect(await push(again, fresh, fresh)).toMatchObject([{ roomId, waiting: [{ eventId: fresh.eventId }] }]);
  });

  it("where something older waits, and of many events, only the rooms are named", async () => {
    const other = newRoom();
    await storeEvent(database(), { roomId });
    const fresh = await push(incoming({ roomId }), incoming({ roomId: other }));
    expect(fresh).toEqual([{ roomId }, { roomId: other, waiting: [expect.anything()] }]);
    const many = Array.from({ length: 50 }, () => incoming({ roomId: newRoom() }));
    expect(await push(...many)).toEqual(many.map((event) => ({ roomId: event.roomId })));
    expect(await push()).toEqual([]);
  });

  it("an event is overtaken by its edit or redaction, stored before it or with it", async () => {
    const [edited, redacted, plain] = [incoming({ roomId }), incoming({ roomId }), incoming({ roomId })];
    const edit = await storeEvent(database(), { roomId, replaces: edited.eventId });
    await settle(database(), edit, {});
    const [fresh] = await push(incoming({ roomId, redacts: redacted.eventId }), edited, redacted, plain);
    expect(fresh?.waiting?.map(({ isOvertaken }) => isOvertaken)).toEqual([false, true, true, false]);
  });
});
