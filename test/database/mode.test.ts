import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Call, gate, type Verdict } from "../../src/agent/mode.ts";
import { type Level, levels } from "../../src/agent/permissions.ts";
import { modes } from "../../src/agent/settings.ts";
import { type AnyTool, defineTool, operationKinds } from "../../src/agent/tool.ts";
import { History } from "../../src/database/history.ts";
import { Rooms } from "../../src/database/rooms.ts";
import { HOME, type RoomId } from "../../src/lib/ids.ts";
import { tool as writeFile } from "../../src/tools/fs-write-file.ts";
import { FileSystem } from "../../src/vfs/file-system.ts";
import { actorOf, shares } from "../support/actor.ts";
import { makeAgent } from "../support/agents.ts";
import { onEachDatabase } from "../support/database.ts";
import { newKey, newRoom, newUser, setMember } from "../support/rows.ts";

/** The table of the design: what has to be true of a call that sends nothing, by kind. */
const needed: Record<(typeof operationKinds)[number], Level> = {
  read: "use",
  create: "operate",
  update: "operate",
  delete: "operate",
};
const allowedKinds: Record<(typeof modes)[number], readonly string[]> = {
  none: [],
  read: ["read"],
  create: ["read", "create"],
  update: ["read", "create", "update"],
  delete: ["read", "create", "update", "delete"],
};
const reaches = (level: Level, least: Level) => levels.indexOf(level) >= levels.indexOf(least);

onEachDatabase((database) => {
  const [ann, bob] = [newUser(), newUser()];
  /** Ann and Bob are in `both`, Ann alone in `here`, nobody in `empty`. */
  const [here, both, empty] = [newRoom(), newRoom(), newRoom()];
  beforeAll(async () => {
    for (const [roomId, userId] of [
      [here, ann],
      [both, ann],
      [both, bob],
    ] as const)
      await setMember(database(), roomId, userId, "join");
  });

  const decide = (
    tool: { kind: (typeof operationKinds)[number]; own?: AnyTool["own"]; sendsTo?: RoomId | undefined },
    call: Partial<Omit<Call, "agent" | "tool">> & { mode?: (typeof modes)[number] },
  ): Promise<Verdict> => {
    const { sendsTo } = tool;
    const definition = defineTool({
      name: "Test",
      set: "core",
      description: "A tool",
      repeatable: true,
      input: z.object({}),
      run: async () => ({ result: "" }),
      kind: tool.kind,
      ...(tool.own !== undefined && { own: tool.own }),
      ...(sendsTo !== undefined && { sendsTo: () => sendsTo }),
    });
    const { mode = "delete", ...rest } = call;
    const agent = makeAgent("helper", { mode });
    const defaults = {
      roomId: here,
      input: {},
      kind: tool.kind,
      level: "admin",
      by: "model",
      sources: [here],
      files: new FileSystem(shares(database()), actorOf(agent, here), newKey()),
    } as const;
    const parts = { rooms: new Rooms(database()), history: new History(database()) };
    return gate({ ...defaults, ...rest, agent, tool: definition }, parts);
  };

  const cells = modes.flatMap((mode) =>
    operationKinds.flatMap((kind) => levels.map((level) => ({ mode, kind, level }))),
  );

  it.each(cells)("a model's call: mode $mode, kind $kind, level $level", async ({ mode, kind, level }) => {
    const run = allowedKinds[mode].includes(kind) && reaches(level, needed[kind]);
    expect((await decide({ kind }, { mode, level })).decision === "run").toBe(run);
  });

  it.each(cells)("a person's command, in any mode: mode $mode, kind $kind, level $level", async (cell) => {
    const { mode, kind, level } = cell;
    const verdict = await decide({ kind }, { mode, level, by: "person" });
    expect(verdict.decision === "run").toBe(reaches(level, needed[kind]));
  });

  it.each(cells)("a model's own affairs: mode $mode, kind $kind, level $level", async ({ mode, kind, level }) => {
    expect((await decide({ kind, own: true }, { mode, level })).decision === "run").toBe(reaches(level, "chat"));
  });

  it.each(cells)("the answer into the own room: mode $mode, kind $kind, level $level", async (cell) => {
    const { mode, kind, level } = cell;
    expect((await decide({ kind, sendsTo: here }, { mode, level })).decision === "run").toBe(reaches(level, "chat"));
  });

  it.each(levels)("a person with the level %s needs the right to operate, whoever the tool concerns", async (level) => {
    const run = reaches(level, "operate");
    for (const tool of [{ own: true }, { sendsTo: here }]) {
      const verdict = await decide({ kind: "create", ...tool }, { level, by: "person" });
      expect(verdict.decision === "run").toBe(run);
    }
  });

  describe("a file that is written", () => {
    const write = (path: string, mode: (typeof modes)[number], level: Level, by: Call["by"] = "model") =>
      decide({ kind: "update", own: writeFile.own }, { mode, level, by, input: { path, content: "" } });

    it.each(modes)("is the agent's own affair where it is its scratchpad, in mode %s", async (mode) => {
      expect(await write("agents:/helper/scratchpad.txt", mode, "chat")).toEqual({ decision: "run" });
      expect(await write("agents:/helper/scratchpad.txt", mode, "none")).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
      });
    });

    it.each([
      "agents:/helper/scratchpad.txt.old",
      "agents:/helper/memory/NOW.md",
      "agents:/other/scratchpad.txt",
      "rooms:/helper/scratchpad.txt",
    ])("is not where it is %s: there the mode and the rights count", async (path) => {
      expect(await write(path, "create", "operate")).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
        reason: expect.stringContaining("mode is create"),
      });
      expect(await write(path, "update", "use")).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
        reason: expect.stringContaining("right to operate"),
      });
      expect(await write(path, "update", "operate")).toEqual({ decision: "run" });
    });

    it("by a person's command needs the right to operate, also where it is the scratchpad", async () => {
      expect(await write("agents:/helper/scratchpad.txt", "update", "use", "person")).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
      });
    });
  });

  describe("a send to another room", () => {
    it("runs where its people may read everything that was shown", async () => {
      expect(await decide({ kind: "create", sendsTo: here }, { roomId: both, sources: [both] })).toEqual({
        decision: "run",
      });
    });

    it("is refused where one of them may not", async () => {
      expect(await decide({ kind: "create", sendsTo: both }, { sources: [here] })).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
        reason: expect.stringContaining("may not read"),
      });
    });

    it("is refused where one of several sources is closed to them", async () => {
      const verdict = await decide({ kind: "create", sendsTo: both }, { sources: [both, here] });
      expect(verdict).toMatchObject({ decision: expect.stringMatching(/^(ask|refuse)$/) });
    });

    it("is refused where nobody is there to read it", async () => {
      expect(await decide({ kind: "create", sendsTo: empty }, {})).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
      });
    });

    it("from home is refused where somebody else than the owner would read it", async () => {
      const verdict = await decide({ kind: "create", sendsTo: here }, { roomId: HOME, sources: [HOME] });
      expect(verdict).toMatchObject({ decision: expect.stringMatching(/^(ask|refuse)$/) });
    });

    it("is no own affair: the mode counts", async () => {
      const call = { roomId: both, sources: [both], mode: "read" } as const;
      expect(await decide({ kind: "create", sendsTo: here }, call)).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
        reason: expect.stringContaining("mode is read"),
      });
    });

    it("is no own affair: the right to chat is not enough", async () => {
      const call = { roomId: both, sources: [both], level: "chat" } as const;
      expect(await decide({ kind: "create", sendsTo: here }, call)).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
        reason: expect.stringContaining("right to operate"),
      });
    });

    it("is held back by walls for a person too, whatever their rights", async () => {
      const call = { by: "person", level: "admin", sources: [here] } as const;
      expect(await decide({ kind: "create", sendsTo: both }, call)).toMatchObject({
        decision: expect.stringMatching(/^(ask|refuse)$/),
      });
    });
  });
});
