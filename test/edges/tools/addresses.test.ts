import { describe, expect, it } from "vitest";
import { tool as browse } from "../../../src/edges/tools/browse-web.ts";
import { tool as index } from "../../../src/edges/tools/fs-index.ts";
import { tool as shot } from "../../../src/edges/tools/take-screenshot.ts";
import { readCommandLine } from "../../../src/engine/operations/command-line.ts";
import type { ToolContext } from "../../../src/engine/operations/tool.ts";

describe("an address behind a command", () => {
  it.each(["<https://a.example/b>", '"https://a.example/b"', "“https://a.example/b”", "https://a.example/b"])(
    "may be written as %s",
    (written) => {
      expect(readCommandLine(browse, written)).toMatchObject({ url: "https://a.example/b" });
      expect(readCommandLine(shot, written)).toMatchObject({ url: "https://a.example/b" });
      expect(readCommandLine(index, written)).toMatchObject({ path: "https://a.example/b" });
    },
  );

  it.each(["<b>", "'notes.md'x", "https://a.example/<b>"])("is as it is where it is %s", (written) => {
    expect(readCommandLine(index, written)).toEqual({ path: written });
  });
});

describe("the address of a picture", () => {
  const reachesOutside = (url: string) =>
    typeof shot.reachesOutside === "function" && shot.reachesOutside({ url }, {} as ToolContext);

  it.each([
    ["localhost:3000", "http://localhost:3000"],
    ["127.0.0.1:3000/a?b", "http://127.0.0.1:3000/a?b"],
    ["[::1]:3000", "http://[::1]:3000"],
    ["localhost", "http://localhost"],
  ])("of a server of the computer may be %s", (written, url) => {
    expect(readCommandLine(shot, written)).toEqual({ url });
    expect(reachesOutside(url)).toBe(false);
  });

  it.each([
    "localhost:3000@evil.example/",
    "localhost.evil.example:80",
    "localhost@evil.example:80",
    "evil.example:80",
  ])("%s is of another", (written) => {
    const { url } = readCommandLine(shot, written) as { url: string };
    expect(reachesOutside(url)).toBe(true);
  });

  it("says what is missing, and takes no host for a scheme", async () => {
    const context = {
      agent: {},
      browsers: { shoot: async () => ({}) },
      files: { sourcesOf: async () => [] },
    } as unknown as ToolContext;
    const run = (url: string) => shot.run({ url }, context, "read");
    await expect(run("a.example:80/b")).rejects.toThrow("is no address: write all of it");
    await expect(run("file:///etc/passwd")).rejects.toThrow("Pictures are taken of http and https, and not of file:");
  });
});
