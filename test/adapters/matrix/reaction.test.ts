import { expect, it } from "vitest";
import { reactionContent, readReaction } from "../../../src/adapters/matrix/reaction.ts";
import { withTarget } from "../../../src/adapters/matrix/relation.ts";
import type { EventId } from "../../../src/base/lib/ids.ts";

it("a reaction is read as it is written", () => {
  const reaction = { target: "$event" as EventId, key: "👍" };
  expect(readReaction(reactionContent(reaction))).toEqual(reaction);
});

it.each([
  {},
  { "m.relates_to": [] },
  { "m.relates_to": { rel_type: "m.thread", event_id: "$event", key: "👍" } },
  { "m.relates_to": { rel_type: "m.annotation", event_id: "event", key: "👍" } },
  { "m.relates_to": { rel_type: "m.annotation", event_id: "$event", key: "" } },
  { "m.relates_to": { rel_type: "m.annotation", event_id: "$event" } },
  null,
])("%j is none", (content) => {
  expect(readReaction(content)).toBeUndefined();
});

it("a reaction finds its event later without losing its sign", () => {
  const without = { "m.relates_to": { rel_type: "m.annotation", key: "👍" }, more: 1 };
  const found = withTarget(without, "$event" as EventId);
  expect(readReaction(found)).toEqual({ target: "$event", key: "👍" });
  expect(found).toMatchObject({ more: 1 });
});
