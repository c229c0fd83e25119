import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { parseGlob } from "../../../src/domain/files/glob.ts";

const fits = (glob: string, path: string): boolean => parseGlob(`agents:${glob}`).fits(path);

describe("a pattern of paths", () => {
  it.each([
    ["/a/*.md", "/a/x.md", true],
    ["/a/*.md", "/a/.md", true],
    ["/a/*.md", "/a/b/x.md", false],
    ["/a/*.md", "/a/x.mdx", false],
    ["/a/?.md", "/a/x.md", true],
    ["/a/?.md", "/a/xy.md", false],
    ["/**/*.md", "/x.md", true],
    ["/**/*.md", "/a/b/c/x.md", true],
    ["/a/**", "/a/b/c", true],
    ["/a/**/c", "/a/c", true],
    ["/a/**/c", "/a/b/b/c", true],
    ["/a/**/c", "/ac", false],
    ["/a**/c", "/ab/c", true],
    ["/a**/c", "/ab/b/c", false],
    ["/[a-c]x", "/bx", true],
    ["/[!a-c]x", "/bx", false],
    ["/[!a-c]x", "/dx", true],
    ["/[!a]x", "//x", false],
    ["/x.{md,txt}", "/x.txt", true],
    ["/x.{md,txt}", "/x.png", false],
    ["/a.*", "/aab", false],
    ["/*(1)+^$|.md", "/x(1)+^$|.md", true],
    ["/!room:server/*", "/!room:server/a", true],
  ])("%s and %s: %s", (glob, path, expected) => expect(fits(glob, path)).toBe(expected));

  it("without special characters names one path", () => {
    expect(parseGlob("agents:/a/b.md")).toMatchObject({ isLiteral: true, base: "/a/b.md" });
  });

  it("says in which folder everything is that fits", () => {
    expect(parseGlob("rooms:/!r:s/media/*.png")).toMatchObject({
      share: "rooms",
      base: "/!r:s/media",
      isLiteral: false,
    });
    expect(parseGlob("rooms:/*/x").base).toBe("/");
  });

  it.each(["/{a", "/[z-a]"])("%s is refused", (glob) => expect(() => parseGlob(`agents:${glob}`)).toThrow(UserError));

  it("takes no longer for being intricate", () => {
    const glob = parseGlob(`agents:/${"*a".repeat(200)}b`);
    expect(glob.fits(`/${"a".repeat(1_000)}`)).toBe(false);
  });

  it("of a path's own characters, each as it is or as `?`, fits the path", () => {
    const name = fc.string({ minLength: 1, unit: fc.constantFrom(..."ab.()+^$|é世-_ ~@#=") });
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.boolean()), (parts, masks) => {
        const path = `/${parts
          .map((part) => part.trim())
          .filter((part) => part !== "" && !/^\.+$/.test(part))
          .join("/")}`;
        const glob = [...path].map((letter) => (letter !== "/" && masks.next().value ? "?" : letter)).join("");
        if (glob.includes("?")) expect(fits(glob, path)).toBe(true);
        if (glob.includes("?")) expect(fits(glob, `${path}/more`)).toBe(false);
      }),
    );
  });
});
