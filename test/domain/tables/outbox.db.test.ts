import { expect, it } from "vitest";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { Outbox, type OutboxDraft } from "../../../src/domain/tables/outbox.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey, newRoom, newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  const outbox = () => new Outbox(database());
  const draft = (roomId: RoomId, about?: string): OutboxDraft => ({
    key: newKey(),
    roomId,
    sender: newUser(),
    kind: "message",
    content: { body: "hi" },
    about,
  });
  /** A row in a room of its own, and the one that relates to it, both being tried. */
  const related = async () => {
    const roomId = newRoom();
    const earlier = draft(roomId);
    await outbox().add([earlier, draft(roomId, earlier.key)]);
    const [first, second] = await outbox().take(roomId, 10);
    if (!first || !second) throw new Error("both wait to be sent");
    return { roomId, first, second };
  };

  it("a row names the earlier one that it relates to", async () => {
    const { first, second } = await related();
    expect([first.about, second.about]).toEqual([null, first.key]);
  });

  it("what it relates to is known as soon as it is sent", async () => {
    const { roomId, first } = await related();
    expect(await outbox().eventOf(roomId, first.key)).toBeUndefined();
    await outbox().sent([{ key: first.key, eventId: "$card" as EventId }]);
    expect(await outbox().eventOf(roomId, first.key)).toBe("$card");
  });

  it("nothing relates to a row of another room, or to one that was given up", async () => {
    const { roomId, first, second } = await related();
    await outbox().sent([{ key: first.key, eventId: "$card" as EventId }]);
    expect(await outbox().eventOf(newRoom(), first.key)).toBeUndefined();
    await outbox().giveUp(second, { error: "refused" });
    expect(await outbox().eventOf(roomId, second.key)).toBeUndefined();
  });

  it("what is given up is followed by what people are told, once", async () => {
    const { roomId, second } = await related();
    const notice = draft(roomId);
    await outbox().giveUp(second, { error: "refused", notice: [notice] });
    await outbox().giveUp(second, { error: "refused", notice: [draft(roomId)] });
    expect((await outbox().take(roomId, 10)).map(({ key }) => key)).toContain(notice.key);
    expect(await outbox().take(roomId, 10)).toHaveLength(2);
  });

  it("what the homeserver has is not taken again, and what waits behind it is", async () => {
    const roomId = newRoom();
    const drafts = [draft(roomId), draft(roomId), draft(roomId)];
    await outbox().add(drafts);
    const [first, ...rest] = drafts.map(({ key }) => key);
    const taken = await outbox().take(roomId, 10, undefined, [first ?? ""]);
    expect(taken.map(({ key }) => key)).toEqual(rest);
  });

  it("a row that was queued 23 hours ago may be one that the homeserver has forgotten", async () => {
    const roomId = newRoom();
    const [old, young] = [draft(roomId), draft(roomId)];
    await outbox().add([old, young]);
    await database().sql`update outbox set created_at = now() - interval '23 hours 1 minute' where key = ${old.key}`;
    const taken = await outbox().take(roomId, 10);
    expect(taken.map(({ key, isForgotten }) => [key, isForgotten])).toEqual([
      [old.key, true],
      [young.key, false],
    ]);
  });

  it("many rows are marked as sent at once, each with its event, and none that was settled before", async () => {
    const roomId = newRoom();
    const [one, two, three] = [draft(roomId), draft(roomId), draft(roomId)];
    await outbox().add([one, two, three]);
    await outbox().sent([{ key: one.key, eventId: "$echo" as EventId }]);
    await outbox().sent([one, two].map(({ key }, index) => ({ key, eventId: `$late${index}` as EventId })));
    const events = await Promise.all([one, two, three].map(({ key }) => outbox().eventOf(roomId, key)));
    expect(events).toEqual(["$echo", "$late1", undefined]);
  });
});
