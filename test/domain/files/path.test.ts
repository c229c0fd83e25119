import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { HOME, type RoomId } from "../../../src/base/lib/ids.ts";
import { visible } from "../../../src/base/lmml/visible.ts";
import {
  folderHere,
  formatPath,
  fromShare,
  nameOf,
  parsePath,
  rootOf,
  shortenPath,
} from "../../../src/domain/files/path.ts";
import { hostileText } from "../../support/hostile-text.ts";

const clean = (text: string): string => formatPath(parsePath(text));

describe("a path", () => {
  it.each([
    ["agents:/notes.txt", "agents:/notes.txt"],
    ["  rooms:/!a:b/x  ", "rooms:/!a:b/x"],
    ["agents:/a//b/./c/", "agents:/a/b/c"],
    ["agents:/ a / b /", "agents:/a/b"],
    ["agents:/", "agents:/"],
    ["agents:", "agents:/"],
    ["users:/@Ann:Example.org/Notes", "users:/@Ann:Example.org/Notes"],
    ["agents:/a..b/...", "agents:/a..b/..."],
    ["agents:/100%", "agents:/100%"],
    ["agents:/caf\u0065\u0301", "agents:/caf\u00e9"],
  ])("%j is %j", (text, expected) => expect(clean(text)).toBe(expected));

  it("of an unknown share is answered with those that there are", () => {
    expect(() => parsePath("files:/a")).toThrow(/Shares: agents, users, rooms, system, sandbox\.$/);
  });

  it.each([
    ["a parent folder", "agents:/a/../b"],
    ["a parent folder at the end", "agents:/a/.."],
    ["an encoded parent folder", "agents:/%2e%2e/b"],
    ["an encoded slash", "agents:/a%2Fb"],
    ["an encoded backslash", "agents:/a%5cb"],
    ["an encoded NUL", "agents:/a%00"],
    ["NUL", "agents:/a\0b"],
    ["a backslash", "agents:/a\\b"],
    ["a line break", "agents:/a\nb"],
    ["a tab", "agents:/a\tb"],
    ["half a character", "agents:/a\ud800"],
    ["letters that run backwards", "agents:/a\u202egpj.exe"],
    ["a letter without width", "agents:/pay\u200bpal"],
    ["tag characters", "agents:/a\u{e0041}"],
    ["no share", "/a/b"],
    ["an unknown share", "files:/a"],
    ["a share in capitals", "Agents:/a"],
    ["a share without a slash", "agents:a"],
    ["nothing", ""],
    ["1,025 characters", `agents:/${"a".repeat(1_024)}`],
    ["more bytes than an index holds", `agents:/${"世".repeat(1_000)}`],
  ])("with %s is refused", (_, text) => expect(() => parsePath(text)).toThrow(UserError));

  it("may have 1,024 characters", () => expect(clean(`agents:/${"a".repeat(1_023)}`)).toHaveLength(7 + 1_024));

  it("that was read is read as itself, and is what it looks like", () => {
    const parts = fc.array(fc.oneof(fc.constantFrom("", ".", "..", "a", "é", "e\u0301", "%2e", "\\"), hostileText));
    fc.assert(
      fc.property(parts, (some) => {
        let path: string;
        try {
          path = clean(`agents:/${some.join("/")}`);
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
          return;
        }
        expect(clean(path)).toBe(path);
        expect(path.normalize("NFC")).toBe(path);
        expect(visible(path)).toBe(path);
        expect(path.split("/").slice(1)).not.toContain("..");
        expect(path).not.toMatch(/[\\\0\n]|\/\/|[^:]\/$/);
      }),
    );
  });

  it.each([
    ["notes.md", "rooms:/!a:b/notes.md"],
    [" old/notes.md ", "rooms:/!a:b/old/notes.md"],
    ["/notes.md", "rooms:/!a:b/notes.md"],
    ["**/*.md", "rooms:/!a:b/**/*.md"],
    ["old/", "rooms:/!a:b/old/"],
    ["agents:/helper/a.md", "agents:/helper/a.md"],
    ["agents/helper/memory/LOG.md", "rooms:/!a:b/agents/helper/memory/LOG.md"],
    ["agents/helper/memory", "rooms:/!a:b/agents/helper/memory"],
  ])("without a share is this room's: %j", (text, whole) => {
    expect(fromShare(text, folderHere("helper", "!a:b" as RoomId))).toBe(whole);
  });

  it("without a share is the agent's own at home", () => {
    expect(fromShare("a.md", folderHere("helper", HOME))).toBe("agents:/helper/a.md");
  });

  it.each(["rooms/a.md", "/agents/a.md", "12:30.md", "!c/a.md", "@ann/a.md"])(
    "that could be another's has no share: %j",
    (text) =>
      expect(() => parsePath(fromShare(text, folderHere("helper", "!a:b" as RoomId)))).toThrow("names no share"),
  );

  it("that begins like a share is answered with the form that it may mean", () => {
    expect(() => parsePath("agents/helper/persona.md")).toThrow("did you mean agents:/helper/persona.md.");
    expect(() => parsePath("/rooms/!a:b/notes.md")).toThrow("did you mean rooms:/!a:b/notes.md");
    const home = folderHere("helper", HOME);
    expect(() => parsePath(fromShare("agents/helper/memory/LOG.md", home))).toThrow("did you mean agents:/helper/");
  });

  it("leads out of the room by no means", () => {
    const here = folderHere("helper", "!a:b" as RoomId);
    for (const text of ["../!c:d/a.md", "./../a", "a/../../b", "agents/x/memory/../../../../!c:d/a.md"])
      expect(() => parsePath(fromShare(text, here))).toThrow("holds `..`");
  });

  it("is shown as it may be written", () => {
    const here = folderHere("helper", "!a:b" as RoomId);
    const short = (path: string) => shortenPath(here, parsePath(path));
    expect(short("rooms:/!a:b/old/notes.md")).toBe("old/notes.md");
    expect(short("rooms:/!a:b")).toBe(".");
    for (const path of ["rooms:/!a:bc/a.md", "rooms:/!a:b/rooms/a.md", "rooms:/!a:b/12:30.md", "agents:/helper/a.md"])
      expect(short(path)).toBe(path);
  });

  it("has a root and a name", () => {
    expect(rootOf(parsePath("rooms:/!a:b/media/x.png"))).toBe("!a:b");
    expect(nameOf(parsePath("rooms:/!a:b/media/x.png"))).toBe("x.png");
    expect(rootOf(parsePath("rooms:/"))).toBe("");
  });
});
