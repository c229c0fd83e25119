import { expect, it } from "vitest";
import { fileContent } from "../../../src/adapters/matrix/file-content.ts";
import type { EventId } from "../../../src/base/lib/ids.ts";

const file = { name: "a.txt", contentType: "text/plain", bytes: 1 };

it("a file stands in a thread like what is said there, with the fallback for clients that know none", () => {
  const thread = { root: "$root" as EventId, latest: "$newest" as EventId };
  expect(fileContent({ file, thread, key: "k" })["m.relates_to"]).toEqual({
    rel_type: "m.thread",
    event_id: "$root",
    is_falling_back: true,
    "m.in_reply_to": { event_id: "$newest" },
  });
  expect(fileContent({ file, key: "k" })).not.toHaveProperty("m.relates_to");
});
