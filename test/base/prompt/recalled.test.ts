import { describe, expect, test } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { type LayoutName, layout } from "../../../src/base/prompt/layout.ts";
import type { RecalledView } from "../../../src/base/prompt/recalled-view.ts";
import { exampleWorld } from "./worlds.ts";

const here = exampleWorld.conversation as RoomId;
const self = exampleWorld.agent.userId;
const memory: RecalledView = {
  kind: "observation",
  roomId: here,
  eventId: "$0LQsM_PaBmP5TT-k70mxDHjJeCxv32bb0aPV47nDbbM" as EventId,
  number: 113,
  sender: "@ann:matrix.org" as UserId,
  at: new Date("2024-12-20T23:30:40Z"),
  text: "the locker is 115",
  score: 0.95921,
};
const shown = (changed: Partial<RecalledView>, name: LayoutName = "cacheable"): string => {
  const { user } = layout({ ...exampleWorld, timeZone: "UTC", recalled: [{ ...memory, ...changed }] }, name);
  return /<ragResult [^>]*>\s*([\s\S]*?)\s*<\/ragResult>/.exec(user)?.[1] ?? "";
};

describe("what is recalled", () => {
  test("stands with number, minute and short name where it was said in the room", () => {
    expect(shown({})).toBe('<message id="113" timestamp="2024-12-20 23:30" sender="ann">the locker is 115</message>');
  });

  test("names its room where it was said in another", () => {
    expect(shown({ roomId: "!other:matrix.org" as RoomId })).toContain(
      'id="113" roomId="!other:matrix.org" timestamp="2024-12-20 23:30" sender="ann"',
    );
  });

  test("names people of other servers in full", () => {
    expect(shown({ sender: "@ann:elsewhere.org" as UserId })).toContain('sender="@ann:elsewhere.org"');
  });

  test("is marked as sent where the agent said it", () => {
    expect(shown({ sender: self })).toContain(" sent>");
  });

  test("has the id of an event that has no number", () => {
    expect(shown({ number: null })).toContain(`id="${memory.eventId}"`);
  });

  test("is a memory of its kind where nobody said it", () => {
    expect(shown({ kind: "thought", eventId: null, number: null, sender: self })).toBe(
      '<memory timestamp="2024-12-20 23:30" kind="thought">the locker is 115</memory>',
    );
  });

  test("has all that is known of it in the layout seed", () => {
    const { eventId, sender, text } = memory;
    const attributes = `roomId="${here}" timestamp="2024-12-20T23:30:40Z" eventId="${eventId}" sender="${sender}"`;
    expect(shown({}, "seed")).toBe(`<message ${attributes}>${text}</message>`);
  });
});
