import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../src/lib/ids.ts";
import { readMissed } from "../../src/matrix/sweep.ts";

const agent = "@agent_helper:example.org" as UserId;
const room = "!room:example.org";

/** What is read of this answer to a sync; there is nothing before it. */
const readFrom = (answer: unknown) => {
  const client = {
    sync: async () => answer as Record<string, unknown>,
    messagesBefore: async () => ({ events: [], next: undefined }),
  };
  return readMissed(client, agent, "since", async () => false);
};

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
    expect(invites).toEqual([{ roomId: room, inviter: "@ann:example.org", direct: true }]);
  });

  it("without the agent's own event is by nobody", async () => {
    const rooms = {
      invite: { [room]: { invite_state: { events: [name, { ...full, state_key: "@ben:example.org" }] } } },
    };
    expect((await readFrom({ next_batch: "next", rooms })).invites).toEqual([
      { roomId: room, inviter: undefined, direct: false },
    ]);
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
