import { describe, expect, it } from "vitest";
import { loadAll } from "../../../src/app/start/load.ts";
import type { AgentName, RoomId } from "../../../src/base/lib/ids.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";
import { roomsIn, wordingOf } from "../../../src/engine/operations/wording.ts";

const tools = await loadAll<AnyTool>("tools", "tool");
const here = "!here:test" as RoomId;
const worded = (name: string, input: object, isHere = true, names: readonly [string, string][] = []) => {
  const tool = tools.find((one) => one.name === name);
  const call = {
    agent: "helper" as AgentName,
    roomId: here,
    tool: name,
    kind: "update" as const,
    input: input as never,
  };
  const { text, said } = wordingOf(call, tool, { isHere, names: new Map(names) });
  return { text, said: [...said], rooms: roomsIn(call, tool) };
};

describe("a call in the words of people", () => {
  it("names a file of the room where it is read, in full", () => {
    const input = { path: "rooms:/!here:test/list.md" };
    expect(worded("FS_Delete", input)).toEqual({ text: "Delete `list.md`", said: ["path"], rooms: [] });
    expect(worded("FS_Delete", input, false).text).toBe("Delete `rooms:/!here:test/list.md`");
  });

  it("says in words what is simply true", () => {
    const input = { path: "rooms:/!here:test/old", recursive: true };
    const { said, text } = worded("FS_Delete", input);
    expect([text, said]).toEqual(["Delete `old` with everything in it", ["path", "recursive"]]);
  });

  it.each(["rooms:/!here:test", "rooms:/!here:test/", "rooms:/!here:test/./"])("says that %s are all files", (path) => {
    expect(worded("FS_Delete", { path }).text).toBe("Delete all files of this room");
    expect(worded("FS_Delete", { path }, false).text).toBe("Delete `rooms:/!here:test`");
  });

  it("says of a path that is written otherwise what it means, and leaves it to be shown below as it is", () => {
    const { said, text } = worded("FS_Delete", { path: "rooms:/!here:test//./a.md" });
    expect([text, said]).toEqual(["Delete `a.md`", []]);
  });

  it("names another room, which stands below by its id, too", () => {
    const input = { path: "rooms:/!here:test/a.md", target: "rooms:/!other:test/b/c.md" };
    const { rooms, said, text } = worded("FS_Copy", input, true, [["!other:test", "Kitchen"]]);
    expect([text, said, rooms]).toEqual(["Copy `a.md` to `b/c.md` of the room `Kitchen`", ["path"], ["!other:test"]]);
    const message = { roomId: "!other:test", content: "hello" };
    expect(worded("SendMessage", message, true, [["!other:test", "Kitchen"]])).toMatchObject({
      text: "Say `hello` in the room `Kitchen`",
      said: ["content"],
    });
  });

  it.each([
    ["blanks", "rooms:/!here:test/a  b.md"],
    ["what cannot be seen", "rooms:/!here:test/a\u202Eb.md"],
    ["a long value", `rooms:/!here:test/${"a".repeat(200)}/b.md`],
  ])("leaves a value to be shown below that is not said exactly: %s", (_, path) => {
    expect(worded("FS_Delete", { path }).said).toEqual([]);
  });

  it("keeps what looks like markup as text", () => {
    expect(worded("FS_Grep", { glob: "rooms:/!here:test/*.md", regex: "a`?** ✅ done" }).text).toBe(
      "Look for ``a`?** ✅ done`` in `*.md`",
    );
  });

  it("says that a redaction has emptied a call", () => {
    expect(worded("run_command", {})).toMatchObject({ text: "Use `run_command` (the rest was redacted)", said: [] });
    expect(worded("run_command", { command: "" }).text).toMatch(/^Run on its computer/);
  });

  it("names the tool where it has no words, and one that is gone", () => {
    expect(worded("FS_Gone", { path: "a" })).toMatchObject({ text: "Use `FS_Gone`", said: [] });
  });

  it.each(tools.flatMap(({ name, isOwn: own }) => (own === true ? [] : name)))("is there for %s", (name) => {
    expect(tools.find((one) => one.name === name)?.wording).toBeDefined();
  });
});
