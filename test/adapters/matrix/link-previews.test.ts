import { expect, it } from "vitest";
import { draftContent, draftEdit } from "../../../src/adapters/matrix/draft.ts";
import { fileContent } from "../../../src/adapters/matrix/file-content.ts";
import { messageContent } from "../../../src/adapters/matrix/markdown.ts";
import { asAnswer, asEdit } from "../../../src/adapters/matrix/relation.ts";
import type { EventId } from "../../../src/base/lib/ids.ts";

const markdown = "See https://example.org/?code=4711, [this](https://example.org/) and example.org.";
const target = "$a" as EventId;
const file = { name: "a.txt", contentType: "text/plain", bytes: 1 };
const edit = asEdit(messageContent({ markdown, key: "k" }));

it.each<[string, Readonly<Record<string, unknown>>]>([
  ["a message", messageContent({ markdown, key: "k" })],
  ["a formatted notice", messageContent({ markdown, isNotice: true, key: "k" })],
  ["a draft", draftContent(markdown, undefined, "k")],
  ["an edit of a draft", draftEdit(target, markdown)],
  ["the new text of a draft", draftEdit(target, markdown)["m.new_content"] as Record<string, unknown>],
  ["an edit", edit],
  ["the new text of an edit", edit["m.new_content"]],
  ["an edit that is sent as an answer", asAnswer(edit, target)],
  ["a file with a caption", fileContent({ file, caption: markdown, key: "k" })],
])("%s asks clients and bridges to fetch nothing for its links", (_, content) => {
  expect(content).toMatchObject({ "m.url_previews": [], "com.beeper.linkpreviews": [] });
});
