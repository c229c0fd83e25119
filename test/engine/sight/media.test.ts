import { describe, expect, it } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { StoredEvent } from "../../../src/domain/tables/events.ts";
import type { Media } from "../../../src/domain/tables/media.ts";
import { mediaOf } from "../../../src/engine/sight/media.ts";

const event = (id: string, media: Media | null, content: object = {}): StoredEvent => ({
  seq: 1,
  number: 1,
  eventId: id as EventId,
  roomId: "!room:test" as RoomId,
  type: "m.room.message",
  stateKey: null,
  sender: "@ann:test" as UserId,
  sentAt: new Date(0),
  content: { msgtype: "m.text", body: "hello", ...content },
  replaces: null,
  redacts: null,
  position: 1,
  source: "push",
  editedAt: null,
  isEncrypted: false,
  media,
});
const image = (id: string) =>
  event(id, { state: "kept", path: `rooms:/${id}`, contentType: "image/png", bytes: 1, width: 1, height: 1 });
const replyTo = (id: string, target: string) =>
  event(id, null, { "m.relates_to": { "m.in_reply_to": { event_id: target } } });
const isNew = ({ eventId }: StoredEvent) => eventId.startsWith("$new");

describe("images that a step may show", () => {
  it("are fresh where they are new, or something new answers to them", () => {
    const { images } = mediaOf([image("$old1"), image("$old2"), image("$new1"), replyTo("$new2", "$old1")], isNew);
    const expected = [
      ["$old1", true],
      ["$old2", false],
      ["$new1", true],
    ];
    expect(images.map(({ eventId, isFresh }) => [eventId, isFresh])).toEqual(expected);
  });

  it("are not files of other kinds, nor what is not there", () => {
    const file = event("$new1", { state: "kept", path: "rooms:/a", contentType: "image/svg+xml", bytes: 1 });
    const missing = event("$new2", { state: "missing", reason: "too large" });
    expect(mediaOf([file, missing, event("$new3", null)], isNew).images).toEqual([]);
  });

  it("are waited for where they are new", () => {
    const events = [event("$old", { state: "pending" }), event("$new", { state: "pending" })];
    expect(mediaOf(events, isNew).pending).toEqual(["$new"]);
  });
});
