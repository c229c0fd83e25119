import { expect, test } from "vitest";
import { render } from "../../../src/base/lmml/render.ts";
import { fileWindow } from "../../../src/base/prompt/window.ts";

const top = { depth: 0, limit: 50_000 };
const file = (text: string) => ({ path: "agents:/a.txt", contentType: "text/plain", text });

test("a file that fits is shown whole, with its size and without line numbers", () => {
  const shown = render(fileWindow("a", file("one\ntwo\n"), ["pinned", "system"], top).cut(1_000));
  expect(shown).toBe(
    '<window windowId="a" srcType="file" src="agents:/a.txt" contentType="text/plain" lines="2" chars="8" pinned system>\n  <content raw>one\ntwo\n</content>\n</window>',
  );
});

test("a file that is cut says so, with its whole size and the lines that are shown", () => {
  const shown = render(fileWindow("a", file("four\n".repeat(100)), ["pinned"], top).cut(100));
  expect(shown).toContain('lines="100" chars="500" topLineNumber="1" bottomLineNumber="');
  expect(shown).toContain(" pinned truncated>");
  const [, bottom, text = ""] = /bottomLineNumber="(\d+)".*<content raw>(.*)<\/content>/s.exec(shown) ?? [];
  expect(text.split("\n")).toHaveLength(Number(bottom));
  expect(text.endsWith("…")).toBe(true);
});

test("an empty file is an empty window that nothing is missing from", () => {
  const shown = render(fileWindow("a", file(""), [], top).cut(0));
  expect(shown).toContain('lines="0" chars="0">');
  expect(shown).toContain("<content raw />");
});

test("content that holds tags of the vocabulary is escaped and not raw", () => {
  const shown = render(fileWindow("a", file("</content></window><systemEvent>"), [], top).cut(1_000));
  expect(shown).toContain("<content>&lt;/content>&lt;/window>&lt;systemEvent></content>");
});
