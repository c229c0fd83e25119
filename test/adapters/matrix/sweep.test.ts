import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Page, readAfter, readBefore, readEnd, readMissed } from "../../../src/adapters/matrix/sweep.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";

const agent = "@agent_helper:example.org" as UserId;
const room = "!room:example.org";

/** Reads this answer to a sync. */
const readFrom = (answer: unknown) =>
  readMissed({ sync: async () => answer as Record<string, unknown> }, agent, "since");

describe("an invite", () => {
  const stripped = {
    type: "m.room.member",
    sender: "@ann:example.org",
    state_key: agent,
    content: { membership: "invite", is_direct: true },
  };
  const full = { ...stripped, event_id: "$invite", room_id: room, origin_server_ts: 1, unsigned: { age: 5 } };
  const name = { type: "m.room.name", sender: "@ann:example.org", state_key: "", content: { name: "a room" } };

  it.each([
    ["stripped", stripped],
    ["full", full],
  ])("is read where its event is %s", async (_form, event) => {
    const rooms = { invite: { [room]: { invite_state: { events: [name, event] } } } };
    const { invites } = await readFrom({ next_batch: "next", rooms });
    expect(invites).toEqual([{ roomId: room, inviter: "@ann:example.org", isDirect: true }]);
  });

  it("without the agent's own event is by nobody", async () => {
    const rooms = {
      invite: { [room]: { invite_state: { events: [name, { ...full, state_key: "@ben:example.org" }] } } },
    };
    expect((await readFrom({ next_batch: "next", rooms })).invites).toEqual([
      { roomId: room, inviter: undefined, isDirect: false },
    ]);
  });
});

describe("a room's timeline", () => {
  const timeline = { events: [{ event_id: "$newest" }], prev_batch: "before" };

  it.each([
    [true, "since"],
    [false, undefined],
  ])("is read from where it was read last, if the homeserver has cut it: %j", async (isLimited, after) => {
    const { rooms } = await readFrom({
      next_batch: "next",
      rooms: { join: { [room]: { timeline: { ...timeline, limited: isLimited } } } },
    });
    expect(rooms).toEqual([{ roomId: room, state: [], events: timeline.events, ...(after && { after }) }]);
  });

  /** Pages by the tokens with which they are asked for. */
  const reader = (pages: Record<string, object>) => ({
    request: async (_method: string, _path: string, { query }: { query?: Record<string, unknown> } = {}) =>
      (pages[String(query?.from ?? "end")] ?? {}) as Record<string, unknown>,
  });
  const ids = async (read: AsyncGenerator<Page>) => {
    const found: unknown[] = [];
    for await (const { events } of read) found.push(...events.map(({ event_id }) => event_id));
    return found;
  };

  it("does not end with a page of which the user may see nothing", async () => {
    const pages = {
      a: { chunk: [{ event_id: "$1" }], end: "b" },
      b: { chunk: [], end: "c" },
      c: { chunk: [{ event_id: "$2" }], end: "d" },
    };
    expect(await ids(readAfter(reader(pages), agent, room as RoomId, "a"))).toEqual(["$1", "$2"]);
    expect(await ids(readBefore(reader({ ...pages, end: pages.a }), agent, room as RoomId))).toEqual(["$1", "$2"]);
  });

  it("ends with a page that leads to itself", async () => {
    expect(
      await ids(readAfter(reader({ a: { chunk: [{ event_id: "$1" }], end: "a" } }), agent, room as RoomId, "a")),
    ).toEqual(["$1"]);
  });

  it("is read back to the user's own join, where nobody knows how far it was read", async () => {
    const join = { event_id: "$join", type: "m.room.member", state_key: agent, content: { membership: "join" } };
    const pages = {
      end: { chunk: [{ event_id: "$3" }, { event_id: "$2" }], start: "s", end: "b" },
      b: { chunk: [join, { event_id: "$1" }], end: "c" },
      c: { chunk: [{ event_id: "$0" }], end: "d" },
    };
    const { events, next } = await readEnd(reader(pages), agent, room as RoomId);
    expect([events.map(({ event_id }) => event_id), next]).toEqual([["$1", "$join", "$2", "$3"], "s"]);
  });
});

describe("an answer to a sync", () => {
  it("is read without an error, whatever stands in it", async () => {
    const events = fc.oneof(fc.jsonValue(), fc.array(fc.oneof(fc.jsonValue(), fc.constant({ type: "m.room.member" }))));
    const section = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(
        fc.string(),
        fc.record({
          state: fc.record({ events }),
          timeline: fc.record({ events, limited: fc.jsonValue(), prev_batch: fc.jsonValue() }),
          invite_state: fc.record({ events }),
        }),
      ),
    );
    const rooms = fc.oneof(fc.jsonValue(), fc.record({ join: section, leave: section, invite: section }));
    await fc.assert(
      fc.asyncProperty(rooms, async (value) => {
        expect((await readFrom({ next_batch: "next", rooms: value })).next).toBe("next");
      }),
    );
  });

  it.each([{}, { next_batch: 5 }])("that names no place to go on from is none: %j", async (answer) => {
    await expect(readFrom(answer)).rejects.toThrow("names no place to go on from");
  });
});
