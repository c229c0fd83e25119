import { describe, expect, it } from "vitest";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { findRelated } from "../../../src/domain/speech/related.ts";
import type { StoredEvent } from "../../../src/domain/tables/events.ts";

const room = "!room:test" as RoomId;
const event = (eventId: string, roomId: string, thread?: string) =>
  ({
    eventId,
    roomId,
    type: "m.room.message",
    stateKey: null,
    sender: "@ann:test",
    content: {
      msgtype: "m.text",
      body: "hello",
      ...(thread && { "m.relates_to": { rel_type: "m.thread", event_id: thread } }),
    },
  }) as unknown as StoredEvent;
const known = [
  event("$first", room),
  event("$inThread", room, "$first"),
  { ...event("$join", room), type: "m.room.member", content: { membership: "join" } },
  { ...event("$redacted", room), content: {} },
  event("$elsewhere", "!other:test"),
];
const events = {
  find: async (eventId: EventId) => known.find((one) => one.eventId === eventId),
  findNumbered: async (roomId: RoomId, number: number) => known.filter((one) => one.roomId === roomId)[number - 1],
};

describe("a message that another is to relate to", () => {
  it("is the root of its thread where it stands in none", async () =>
    expect(await findRelated(room, "$first", events)).toEqual({ eventId: "$first", root: "$first" }));

  it("stands in the thread of its root", async () =>
    expect(await findRelated(room, "$inThread", events)).toEqual({ eventId: "$inThread", root: "$first" }));

  it.each(["2", "#2"])("is named by the number under which it is shown: %s", async (named) =>
    expect(await findRelated(room, named, events)).toEqual({ eventId: "$inThread", root: "$first" }),
  );

  it.each(["$unknown", "$join", "3", "$redacted", "$elsewhere", "9", "-1", "1.5", "x", "$", `$${"a".repeat(300)}`])(
    "is not %s",
    (named) =>
      expect(findRelated(room, named, events)).rejects.toThrow(`There is no message ${named} in the room ${room}`),
  );
});
