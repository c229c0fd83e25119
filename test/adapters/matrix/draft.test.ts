import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { draftContent, draftEdit, isDraft } from "../../../src/adapters/matrix/draft.ts";
import type { EventId } from "../../../src/base/lib/ids.ts";
import { hostileText } from "../../support/hostile-text.ts";

const root = "$root" as EventId;

describe("a draft", () => {
  it("and its edits are known by their content, and notify nobody", () => {
    const draft = draftContent("Hello @ann:test", undefined, "key");
    const edit = draftEdit(root, "Hello @ann:test, hello");
    expect([draft, edit].map(isDraft)).toEqual([true, true]);
    expect(draft).toMatchObject({ msgtype: "m.notice", "m.mentions": {}, "org.clevernet.key": "key" });
    expect(edit).toMatchObject({ msgtype: "m.notice", "m.mentions": {} });
    expect(edit["m.relates_to"]).toEqual({ rel_type: "m.replace", event_id: root });
  });

  it("stands in the thread in which it is answered", () => {
    const thread = { root, latest: "$latest" as EventId };
    expect(draftContent("Hello", thread, "key")["m.relates_to"]).toMatchObject({
      rel_type: "m.thread",
      event_id: root,
    });
  });

  it("is shown up to a length at which homeservers take its edits, whatever the text", () => {
    fc.assert(
      fc.property(hostileText, fc.integer({ min: 1, max: 4_000 }), (text, times) => {
        const edit = draftEdit(root, text.repeat(times).slice(0, 20_000));
        expect(Buffer.byteLength(JSON.stringify(edit))).toBeLessThan(64_000);
      }),
      { numRuns: 200 },
    );
  });
});
