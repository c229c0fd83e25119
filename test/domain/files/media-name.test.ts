import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EventId } from "../../../src/base/lib/ids.ts";
import { mediaName } from "../../../src/domain/files/media-name.ts";
import { parsePath } from "../../../src/domain/files/path.ts";

const event = "$event" as EventId;
const unique = /-[a-z0-9]{8,12}\.png$/;

describe("the name of a file that came with an event", () => {
  it.each([
    ["Holiday photo (2).PNG", "Holiday-photo-2"],
    ["Übung 1.png", "Übung-1"],
    ["../../etc/passwd", "passwd"],
    ["C:\\secret\\cat.png", "cat"],
    [".bashrc", "file"],
    ["..", "file"],
    ["", "file"],
    ["a/", "file"],
    ["cat\u202egnp.exe", "cat-gnp"],
    ["x".repeat(500), "x".repeat(60)],
    ["archive.tar.gz", "archive.tar"],
    ["-rf", "rf"],
    ["葛\u{E0100}城", "葛城"],
    ["葛\u0000\u{E0100}城", "葛-城"],
    ["a\u3164b", "a-b"],
    ["e\uFE0F\u0301.png", "é"],
  ])("for %j begins with %j", (given, stem) => {
    const name = mediaName(given, event, "png");
    expect(name.replace(unique, "")).toBe(stem);
    expect(name).toMatch(unique);
  });

  it("is the same for the same event, and another for another", () => {
    expect(mediaName("cat", event, "png")).toBe(mediaName("cat", event, "png"));
    expect(mediaName("cat", event, "png")).not.toBe(mediaName("cat", "$other" as EventId, "png"));
  });

  it("is one part of a path, whatever it was made from", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (given) => {
        const name = mediaName(given, event, "png");
        const path = `rooms:/!room:test/media/${name}`;
        expect(parsePath(path).path).toBe(`/!room:test/media/${name}`);
        expect(name).not.toMatch(/[/\\\s\p{Cc}\p{Cf}]/u);
      }),
    );
  });
});
