import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { contentOf } from "../../../src/domain/files/content.ts";
import { compile, linesIn } from "../../../src/domain/files/grep.ts";
import { sectionsOf } from "../../../src/domain/files/sections.ts";
import { treeOf } from "../../../src/domain/files/tree.ts";
import type { FileInfo } from "../../../src/domain/tables/files.ts";

describe("the type of a content", () => {
  const png = Uint8Array.from([
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0,
  ]);
  const bytes = (text: string) => new TextEncoder().encode(text);

  it.each([
    ["notes.md", "# hello", "text/markdown"],
    ["agent.json", "{}", "application/json"],
    ["a.yaml", "a: 1", "text/yaml"],
    ["a.ts", "let a", "text/plain"],
    ["a.png", "not a picture", "text/plain"],
    ["nothing", "", "text/plain"],
    ["drawing.svg", bytes("<?xml version='1.0'?><svg/>"), "image/svg+xml"],
    ["notes.md", bytes("größer"), "text/markdown"],
  ])("of %s is text", async (name, content, contentType) => {
    expect(await contentOf(name, content)).toMatchObject({ contentType, binary: null });
  });

  it.each([
    ["notes.txt", png, "image/png"],
    ["a.html", bytes("%PDF-1.7\n"), "application/pdf"],
    ["a.txt", Uint8Array.from([0xff, 0xfe, 1, 2]), undefined],
    ["a.txt", bytes("a\0b"), "application/octet-stream"],
  ])("of %s is what its bytes say", async (name, content, contentType) => {
    const found = await contentOf(name, content);
    expect(found.text).toBeNull();
    if (contentType !== undefined) expect(found.contentType).toBe(contentType);
  });
});

describe("lines that fit", () => {
  const find = (text: string, regex: string, surrounding = 0, limit = 10) =>
    linesIn(text, compile(regex), surrounding, limit).map(
      ({ number, text: line, matches }) => `${number}${matches ? ":" : "-"}${line}`,
    );
  const text = "one\ntwo\nthree\nfour\nfive\n";

  it("are found by number", () => expect(find(text, "t[wh]")).toEqual(["2:two", "3:three"]));
  it("bring those around them once", () =>
    expect(find(text, "^t", 1)).toEqual(["1-one", "2:two", "3:three", "4-four"]));
  it("begin and end where lines do, with every kind of line break", () => {
    expect(find("one\r\ntwo\rthree", "^two$")).toEqual(["2:two"]);
    expect(find(text, "five$")).toEqual(["5:five"]);
    expect(find("", "^$")).toEqual(["1:"]);
  });
  it("are at most as many as are wanted", () => expect(find(text, "o", 0, 2)).toEqual(["1:one", "2:two"]));
  it("fit the text's own beginning where it is asked for", () =>
    expect(find(text, "\\At")).toEqual(["2:two", "3:three"]));

  it.each(["(", "a(?=b)", "(a)\\1", "((a{100}){100}){100}", "a".repeat(1_001)])("by %s are not looked for", (regex) => {
    expect(() => compile(regex)).toThrow(UserError);
  });

  it("are found in a time that does not depend on the pattern", () => {
    expect(find(`${"a".repeat(100_000)}!`, "^(a+)+$")).toEqual([]);
  });
});

describe("sections", () => {
  it("begin at headings", () => expect(sectionsOf("# A\ntext\n\n## B\nmore")).toEqual(["# A\ntext", "## B\nmore"]));

  it("hold all words in order, and are never longer than 1,500 characters", () => {
    const words = fc.array(
      fc.oneof(fc.constantFrom("\n", "\n\n", " ", "# "), fc.string({ unit: "grapheme", maxLength: 2_000 })),
    );
    fc.assert(
      fc.property(words, (parts) => {
        const text = parts.join("");
        const sections = sectionsOf(text);
        expect(sections.join("").replace(/\s/gu, "")).toBe(text.replace(/\s/gu, ""));
        for (const section of sections) expect(section.length).toBeLessThanOrEqual(1_500);
      }),
    );
  });
});

describe("a tree", () => {
  const file = (path: string, contentType = "text/plain"): FileInfo => ({
    share: "agents",
    path,
    contentType,
    owner: "",
    version: 1,
    size: 2_048,
    eventId: null,
    sources: [],
    writeKey: null,
    isTainted: false,
    createdAt: new Date(0),
    updatedAt: new Date(0),
  });
  const files = [file("/a/b/c/deep.txt"), file("/a/b/x.txt"), file("/a/empty", "inode/directory"), file("/a/y.txt")];

  it("has folders before files, with types and sizes", () =>
    expect(treeOf(files, "/a", 5, 100)).toBe(
      "b/\n  c/\n    deep.txt (text/plain, 2.0 KB)\n  x.txt (text/plain, 2.0 KB)\nempty/\ny.txt (text/plain, 2.0 KB)",
    ));
  it("counts the files of what it does not open", () =>
    expect(treeOf(files, "/a", 1, 100)).toBe("b/ (2 files)\nempty/ (0 files)\ny.txt (text/plain, 2.0 KB)"));
  it("is cut, and says so", () => expect(treeOf(files, "/", 5, 2)).toBe("a/\n  b/\n[5 more lines]"));
});
