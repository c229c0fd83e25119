import { expect, it } from "vitest";
import type { EventId } from "../../src/lib/ids.ts";
import { reactionContent, readReaction } from "../../src/matrix/reaction.ts";

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
