import { beforeEach, expect, it } from "vitest";
import type { EventId, UserId } from "../../../src/base/lib/ids.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { MediaTable } from "../../../src/domain/tables/media.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newRoom, settleEvent } from "../../support/rows.ts";

const content = { msgtype: "m.image", body: "cat.png", url: "mxc://test/cat" };
const kept = { state: "kept", path: "rooms:/cat.png", contentType: "image/png", bytes: 3 } as const;

onEachDatabase((database) => {
  let media: MediaTable;
  let files: Files;
  let events: Events;
  beforeEach(async () => {
    media = new MediaTable(database());
    files = new Files(database());
    events = new Events(database());
    for (let left = await media.take(); left; left = await media.take())
      await media.settle(left.eventId, { state: "missing", reason: "of another test" });
  });
  const withFile = () =>
    settleEvent(database(), { roomId: newRoom(), content }, { shownChars: 5, media: { state: "pending" } });
  const write = async (eventId: EventId, path: string) => {
    await files.write({
      share: "rooms",
      path,
      contentType: "image/png",
      text: null,
      binary: Buffer.from("cat"),
      owner: "@ann:test" as UserId,
      eventId,
    });
  };
  const mediaOf = async (eventId: EventId) => (await events.find(eventId))?.media;

  it("a file waits from the routing of its event on, and is given to one alone", async () => {
    const { eventId, roomId, sender } = await withFile();
    expect(await mediaOf(eventId)).toEqual({ state: "pending" });
    expect(await media.areWaiting([eventId])).toBe(true);
    const taken = await Promise.all([media.take(), media.take(), media.take()]);
    const given = { eventId, roomId, sender, type: "m.room.message", content, attempts: 1 };
    expect(taken.filter((one) => one !== undefined)).toEqual([given]);
  });

  it("an event without a file has none that waits", async () => {
    await settleEvent(database(), { roomId: newRoom() });
    expect(await media.take()).toBeUndefined();
  });

  it("a file that is put back is given again, and its attempts are counted", async () => {
    const { eventId } = await withFile();
    await media.take();
    await media.putBack(eventId, 60_000);
    expect(await media.take()).toBeUndefined();
    await media.putBack(eventId, 0);
    expect(await media.take()).toMatchObject({ eventId, attempts: 2 });
  });

  it("what became of a file is said once", async () => {
    const { eventId } = await withFile();
    await media.settle(eventId, kept);
    await media.settle(eventId, { state: "missing", reason: "again" });
    expect(await mediaOf(eventId)).toEqual(kept);
    expect(await media.areWaiting([eventId])).toBe(false);
    expect(await media.take()).toBeUndefined();
  });

  it("a redaction removes the file, its old versions, and what is known of it", async () => {
    const { eventId } = await withFile();
    await write(eventId, `/${eventId}/cat.png`);
    await write(eventId, `/${eventId}/cat.png`);
    await media.settle(eventId, kept);
    expect([...(await media.contents([eventId])).values()].map(String)).toEqual(["cat"]);
    await events.redact(eventId);
    expect(await mediaOf(eventId)).toBeNull();
    expect(await media.contents([eventId])).toEqual(new Map());
    const place = { share: "rooms", path: `/${eventId}/cat.png` };
    expect([await files.read([place]), await files.versions(place)]).toEqual([[], []]);
  });

  it("of a file that came after the redaction nothing stays", async () => {
    const { eventId } = await withFile();
    await media.take();
    await events.redact(eventId);
    // As if the write and the redaction had not seen each other.
    await database().sql`
      insert into files (share, path, content_type, binary_content, owner, event_id)
      values ('rooms', ${`/${eventId}/cat.png`}, 'image/png', ${Buffer.from("cat")}, '@ann:test', ${eventId})`;
    await media.settle(eventId, kept);
    expect(await mediaOf(eventId)).toBeNull();
    expect(await media.contents([eventId])).toEqual(new Map());
  });

  it("a file whose event is redacted before it is fetched is still given, without an address", async () => {
    const { eventId } = await withFile();
    await events.redact(eventId);
    expect(await media.take()).toMatchObject({ eventId, content: {} });
  });
});
