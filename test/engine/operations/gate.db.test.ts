import { readdir } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { type AgentName, HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { type Mode, modes } from "../../../src/domain/agents/settings.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { type Level, levels } from "../../../src/domain/rights/permissions.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { WebAddresses } from "../../../src/domain/tables/web-addresses.ts";
import { tool as writeFile } from "../../../src/edges/tools/fs-write-file.ts";
import { type Call, gate, isPermitted, reachesOutside, type Verdict } from "../../../src/engine/operations/gate.ts";
import { type AnyTool, defineTool, type OperationKind, operationKinds } from "../../../src/engine/operations/tool.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { makeAgent } from "../../support/agents.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey, newRoom, newUser, setMember } from "../../support/rows.ts";

const roomModes = [null, ...modes] as const;
const bys = ["model", "person"] as const;
/** Where a call sends something: nowhere, to where it is, to people who may read all that was shown, or who may not. */
const targets = ["nowhere", "here", "open", "closed"] as const;

interface Cell {
  readonly mode: Mode;
  readonly ofRoom: Mode | null;
  readonly kind: OperationKind;
  readonly level: Level;
  readonly isOwn: boolean;
  readonly target: (typeof targets)[number];
  readonly isTainted: boolean;
  readonly by: (typeof bys)[number];
}

/**
 * Reach of each tool beyond the people of its conversation, which is in the room HERE, by the kind of the call and by its
 * input.
 */
const reach: Readonly<Record<string, readonly (readonly [OperationKind, Record<string, unknown>, boolean])[]>> = {
  SendMessage: [
    ["create", { content: "a" }, false],
    ["create", { content: "a", roomId: "HERE" }, false],
    ["create", { content: "a", roomId: "!other:test" }, true],
  ],
  SendFile: [
    ["create", { path: "rooms:/!other:test/a" }, false],
    ["create", { path: "rooms:/HERE/a", roomId: "!other:test" }, true],
  ],
  React: [
    ["create", { eventId: "$a", key: "👍" }, false],
    ["create", { eventId: "$a", key: "👍", roomId: "!other:test" }, true],
  ],
  BrowseWeb: [["read", { url: "https://example.org/?made=up" }, true]],
  YouTube: [["read", { video: "aaaaaaaaaaa" }, false]],
  WebSearch: [["read", { query: "words" }, false]],
  SetAgentParameters: [["update", { wakeUpTimerSeconds: 60 }, true]],
  FS_WriteFile: [
    ["create", { path: "rooms:/HERE/a", content: "" }, false],
    ["update", { path: "rooms:/HERE/a", content: "" }, true],
    ["create", { path: "sandbox:/a", content: "" }, false],
    ["create", { path: "rooms:/!other:test/a", content: "" }, true],
    ["create", { path: "users:/@ann:test/a", content: "" }, true],
    ["create", { path: "agents:/helper/memory/a", content: "" }, true],
  ],
  FS_MakeFolder: [
    ["create", { path: "rooms:/HERE/a" }, false],
    ["create", { path: "users:/@ann:test/a" }, true],
  ],
  FS_Copy: [
    ["create", { path: "users:/@ann:test/a", target: "rooms:/HERE/a" }, false],
    ["update", { path: "rooms:/HERE/b", target: "rooms:/HERE/a" }, true],
    ["create", { path: "rooms:/HERE/a", target: "users:/@ann:test/" }, true],
  ],
  FS_Move: [["update", { glob: "rooms:/HERE/a", target: "rooms:/HERE/b" }, true]],
  FS_Delete: [["delete", { path: "rooms:/HERE/a" }, true]],
  // Knowledge kept of a file names the file.
  FS_Index: [
    ["read", { path: "rooms:/HERE/a" }, false],
    ["read", { path: "https://example.org/?made=up" }, true],
  ],
  FS_Summary: [
    ["read", { path: "rooms:/HERE/a" }, false],
    ["create", { path: "rooms:/HERE/a", keep: true }, false],
  ],
  FS_OpenFile: [["read", { path: "rooms:/!other:test/a" }, false]],
  FS_Read: [["read", { path: "rooms:/!other:test/a" }, false]],
  FS_Search: [["read", { path: "rooms:/", query: "a" }, false]],
  FS_Find: [["read", { glob: "rooms:/" }, false]],
  FS_Grep: [["read", { glob: "rooms:/", regex: "a" }, false]],
  FS_Tree: [["read", {}, false]],
  FS_Stat: [["read", { path: "rooms:/HERE/a" }, false]],
  // The text that it is told then carries the taint.
  Schedule: [["create", { text: "a", at: "2030-12-24T18:00" }, false]],
  Schedule_List: [["read", {}, false]],
  SemanticSearch: [["read", { query: "a" }, false]],
  recall_memory: [["read", { query: "a" }, false]],
  Remember: [
    ["create", { content: "a", shareable: false }, false],
    ["update", { content: "a", shareable: true }, true],
  ],
  // Where it may be shown follows from where it comes from, and its text carries the taint.
  knowledge_add: [
    ["create", { text: "a" }, false],
    ["create", { path: "rooms:/HERE/a" }, false],
  ],
  knowledge_search: [["read", { query: "a" }, false]],
  knowledge_sources: [["read", {}, false]],
  knowledge_delete: [["delete", { sourcePrefix: "user" }, true]],
  Schedule_Remove: [["delete", { id: 1 }, true]],
  compute: [["read", { javascript: "1" }, false]],
  // All that they change stays in the conversation's own sandbox.
  run_command: [["create", { command: "ls" }, false]],
  reset_sandbox: [["delete", {}, false]],
  // A host is told something by what it is asked for.
  take_screenshot: [
    ["read", { url: "http://localhost:3000/a" }, false],
    ["read", { url: "http://127.0.0.1:3000" }, false],
    ["read", { url: "https://example.org/" }, true],
    ["read", { url: "http://localhost.example.org/" }, true],
    ["read", { url: "http://localhost@example.org/" }, true],
    ["read", { url: "nothing" }, true],
  ],
  get_host_port: [["read", { container_port: 3_000 }, false]],
  read_file: [["read", { path: "a" }, false]],
  write_file: [["create", { path: "a", content: "" }, false]],
  delegate: [["read", { subAgent: "planner", request: "a" }, false]],
  TellAgent: [
    ["create", { agent: "of-ann", text: "a" }, false],
    ["create", { agent: "of-bob", text: "a" }, true],
  ],
};
/** Those that touch the agent's own affairs alone, and never ask. */
const ownAffairs = [
  "Operation_Show",
  "Window_Action",
  "log_activity",
  "set_fact",
  "todos_add",
  "todos_clear",
  "todos_done",
  "todos_get",
  "todos_list",
  "todos_remove",
  "todos_replace",
  "update_status",
];

const toolsFolder = new URL("../../../src/edges/tools/", import.meta.url);
const tools = await Promise.all(
  (await readdir(toolsFolder)).map(async (file) => {
    const { tool } = (await import(new URL(file, toolsFolder).href)) as { tool: AnyTool };
    return tool;
  }),
);

const atLeast = (level: Level, least: Level) => levels.indexOf(level) >= levels.indexOf(least);
const steps: Record<Mode, number> = { none: 0, read: 1, create: 2, update: 3, delete: 4 };
const neededFor: Record<OperationKind, Level> = {
  read: "use",
  create: "operate",
  update: "operate",
  delete: "operate",
};

/** Design, sections 9 and 12. */
function designed({ mode, ofRoom, kind, level, isOwn, target, isTainted, by }: Cell): Verdict["decision"] {
  const isEntitled = atLeast(level, neededFor[kind]);
  if (by === "person") return isEntitled && target !== "closed" ? "run" : "refuse";
  if (!atLeast(level, "chat")) return "refuse";
  const isElsewhere = target === "open" || target === "closed";
  if (target === "here" || (isOwn && !isElsewhere)) return "run";
  const isBeyondMode = steps[kind] > Math.min(steps[mode], ofRoom === null ? 4 : steps[ofRoom]);
  const reaches = kind === "update" || kind === "delete" || isElsewhere;
  return !isEntitled || isBeyondMode || target === "closed" || (isTainted && reaches) ? "ask" : "run";
}

const cellsOf = (mode: Mode, ofRoom: Mode | null, by: (typeof bys)[number]): Cell[] =>
  operationKinds.flatMap((kind) =>
    levels.flatMap((level) =>
      targets.flatMap((target) =>
        [true, false].flatMap((isOwn) =>
          [true, false].map((isTainted) => ({ mode, ofRoom, by, kind, level, target, isOwn, isTainted })),
        ),
      ),
    ),
  );

onEachDatabase((database) => {
  const [ann, bob] = [newUser(), newUser()];
  /** Ann and Bob are in `both`, Ann alone in `alone` and in the rooms with modes, nobody in `empty`. */
  const [alone, both, empty] = [newRoom(), newRoom(), newRoom()];
  const here = new Map(roomModes.map((mode) => [mode, newRoom()]));
  /** The statements that the gate asked for, and what they gave: each is asked once. */
  const asked = new Map<string, ReturnType<Rooms["passage"]>>();
  let statements = 0;
  const rooms: Pick<Rooms, "humans" | "passage"> = {
    humans: (roomId) => new Rooms(database()).humans(roomId),
    passage(...question) {
      statements++;
      const key = JSON.stringify(question);
      const known = asked.get(key) ?? new Rooms(database()).passage(...question);
      asked.set(key, known);
      return known;
    },
  };
  beforeAll(async () => {
    const joined = [...[...here.values(), alone, both].map((room) => [room, ann] as const), [both, bob] as const];
    for (const [roomId, userId] of joined) await setMember(database(), roomId, userId, "join");
    for (const [mode, room] of here) await new Rooms(database()).setMode(room, mode);
    for (const [name, owner] of [
      ["of-ann", ann],
      ["of-bob", bob],
    ] as const) {
      const settings = makeAgent(name).settings;
      await agents().seed({ name: name as AgentName, owner, persona: undefined, settings }, "test");
    }
  });

  const agents = () => new AgentDirectory(database(), systemClock, silentLog);
  const toolOf = ({ kind, isOwn, sendsTo, reachesOutside }: Given) =>
    defineTool({
      name: "Test",
      set: "core",
      description: "A tool",
      isRepeatable: true,
      input: z.object({}),
      run: async () => ({ result: "" }),
      kind,
      ...(isOwn !== undefined && { isOwn }),
      ...(sendsTo !== undefined && { sendsTo: () => sendsTo }),
      ...(reachesOutside !== undefined && { reachesOutside }),
    });
  interface Given {
    readonly kind: OperationKind;
    readonly isOwn?: NonNullable<AnyTool["isOwn"]>;
    readonly sendsTo?: RoomId | undefined;
    readonly reachesOutside?: NonNullable<AnyTool["reachesOutside"]>;
  }
  const decide = (tool: Given, call: Partial<Omit<Call, "agent" | "tool">> & { mode?: Mode } = {}) => {
    const { mode = "delete", ...rest } = call;
    const agent = makeAgent("helper", { mode });
    const roomId = rest.roomId ?? alone;
    const defaults = {
      roomId,
      input: {},
      kind: tool.kind,
      level: "admin",
      by: "model",
      requesters: [ann],
      sources: [roomId],
      taint: [],
      files: new FileSystem(shares(database()), actorOf(agent, roomId), newKey()),
      addresses: new WebAddresses(database()),
      agents: agents(),
      rooms,
    } as const;
    return gate({ ...defaults, ...rest, agent, tool: toolOf(tool) });
  };

  const tables = modes.flatMap((mode) => roomModes.flatMap((ofRoom) => bys.map((by) => ({ mode, ofRoom, by }))));
  it.each(tables)("mode $mode in a room of mode $ofRoom, by a $by: as designed", async ({ mode, ofRoom, by }) => {
    const roomId = here.get(ofRoom) ?? alone;
    const wrong: (Cell & { decision: string })[] = [];
    for (const cell of cellsOf(mode, ofRoom, by)) {
      const sendsTo = { nowhere: undefined, here: roomId, open: alone, closed: both }[cell.target];
      const taint = cell.isTainted ? ["@stranger:test"] : [];
      const { decision } = await decide({ ...cell, sendsTo }, { ...cell, roomId, taint });
      if (decision !== designed(cell)) wrong.push({ ...cell, decision });
    }
    expect(wrong).toEqual([]);
  });

  it("asks the database nothing for the agent's own affairs and answers, and else once at most", async () => {
    const count = async (...args: Parameters<typeof decide>) => {
      const before = statements;
      await decide(...args);
      return statements - before;
    };
    expect(await count({ kind: "delete", isOwn: true })).toBe(0);
    expect(await count({ kind: "create", sendsTo: alone })).toBe(0);
    expect(await count({ kind: "create" }, { by: "person" })).toBe(0);
    expect(await count({ kind: "create" })).toBe(1);
    expect(await count({ kind: "delete", sendsTo: both }, { mode: "none", taint: ["@stranger:test"] })).toBe(1);
  });

  it("names all that stands against it", async () => {
    const call = { mode: "read", level: "chat", taint: ["@stranger:test", "rooms:/!r/media/evil.txt"] } as const;
    const verdict = await decide({ kind: "create", sendsTo: both }, call);
    expect(verdict).toMatchObject({ decision: "ask", lacksRights: true });
    const { reason } = verdict as Extract<Verdict, { decision: "ask" }>;
    for (const part of [ann, "right to operate", "mode here is read", both, "may read", ...call.taint])
      expect(reason).toContain(part);
  });

  it("says whether those it is done for have no right to it, apart from the mode", async () => {
    expect(await decide({ kind: "update" }, { mode: "read" })).toMatchObject({ decision: "ask", lacksRights: false });
    expect(await decide({ kind: "update" }, { level: "use" })).toMatchObject({ decision: "ask", lacksRights: true });
  });

  it("of several levels the least is what is given, and nobody at all may do nothing", async () => {
    expect(await decide({ kind: "create", isOwn: true }, { level: "none", requesters: [] })).toMatchObject({
      decision: "refuse",
    });
  });

  describe("where untrusted text was read", () => {
    const taint = ["@stranger:test"];
    it("what the tool says counts for what it reaches", async () => {
      const decision = async (...args: Parameters<typeof decide>) => (await decide(...args)).decision;
      expect(await decision({ kind: "read", reachesOutside: true }, { taint })).toBe("ask");
      expect(await decision({ kind: "read", reachesOutside: () => true }, { taint })).toBe("ask");
      expect(await decision({ kind: "delete", reachesOutside: false }, { taint })).toBe("run");
      expect(await decision({ kind: "read", reachesOutside: true })).toBe("run");
    });

    it("those for whom it is done are no strangers, others beside them are", async () => {
      expect(await decide({ kind: "delete" }, { taint: [ann] })).toEqual({ decision: "run" });
      const verdict = await decide({ kind: "delete" }, { taint: [ann, bob] });
      expect(verdict).toMatchObject({ decision: "ask", reason: expect.stringContaining(bob) });
      expect(verdict).toMatchObject({ reason: expect.not.stringContaining(ann) });
    });
  });

  describe("a file that is written", () => {
    const write = (path: string, mode: Mode, level: Level, rest: Partial<Omit<Call, "agent" | "tool">> = {}) => {
      const { isOwn, sendsTo } = writeFile;
      const agent = makeAgent("helper", { mode });
      const files = new FileSystem(shares(database()), actorOf(agent, alone), newKey());
      const call = { roomId: alone, kind: "update", by: "model", requesters: [ann], sources: [alone] } as const;
      const tool = {
        ...toolOf({ kind: "update" }),
        ...(isOwn !== undefined && { isOwn }),
        ...(sendsTo && { sendsTo }),
      };
      const addresses = new WebAddresses(database());
      const given = { addresses, agent, agents: agents(), files, input: { path, content: "" }, level, rooms, tool };
      return gate({ ...call, taint: [], ...rest, ...given });
    };

    it.each(modes)("is the agent's own affair where it is its scratchpad, in mode %s", async (mode) => {
      expect(await write("agents:/helper/scratchpad.txt", mode, "chat")).toEqual({ decision: "run" });
      expect(await write("agents:/helper/scratchpad.txt", mode, "none")).toMatchObject({ decision: "refuse" });
    });

    it.each(["agents:/helper/scratchpad.txt.old", "agents:/other/scratchpad.txt", "rooms:/helper/scratchpad.txt"])(
      "is not where it is %s: there the mode and the rights count",
      async (path) => {
        const of = (mode: Mode, level: Level) => write(path, mode, level, { sources: [] });
        expect(await of("create", "operate")).toMatchObject({ decision: "ask", lacksRights: false });
        expect(await of("update", "use")).toMatchObject({ decision: "ask", lacksRights: true });
        expect(await of("update", "operate")).toEqual({ decision: "run" });
      },
    );

    it("for people elsewhere asks where they may not read all that was shown", async () => {
      expect(await write(`rooms:/${both}/a.md`, "delete", "operate")).toMatchObject({
        decision: "ask",
        reason: expect.stringContaining(`in ${both}`),
      });
      expect(await write(`rooms:/${alone}/a.md`, "delete", "operate")).toEqual({ decision: "run" });
      expect(await write(`users:/${bob}/a.md`, "delete", "operate")).toMatchObject({ decision: "ask" });
    });

    it("by a person's command needs the right to operate, also where it is the scratchpad", async () => {
      expect(await write("agents:/helper/scratchpad.txt", "update", "use", { by: "person" })).toMatchObject({
        decision: "refuse",
      });
    });
  });

  describe("what is sent elsewhere", () => {
    it("asks where one of several sources is closed to those there", async () => {
      expect(await decide({ kind: "create", sendsTo: both }, { sources: [both, alone] })).toMatchObject({
        decision: "ask",
      });
      expect(await decide({ kind: "create", sendsTo: both }, { sources: [both] })).toEqual({ decision: "run" });
    });

    it("is refused where nobody is there to read it", async () => {
      expect(await decide({ kind: "create", sendsTo: empty })).toMatchObject({ decision: "refuse" });
    });

    it("goes to one user as to a room of theirs", async () => {
      const to = (userId: UserId) => decide({ kind: "create", sendsTo: userId as string as RoomId });
      expect(await to(ann)).toEqual({ decision: "run" });
      expect(await to(bob)).toMatchObject({ decision: "ask" });
    });

    it("names the wall by its place, whatever an untrusted text is called", async () => {
      const call = { sources: [alone], taint: ["rooms:/!r/a.txt"] };
      const walled = await decide({ kind: "create", sendsTo: both }, call);
      if (walled.decision !== "ask" || walled.wall === undefined) throw new Error("no wall");
      expect(walled.wall.place).toBe(both);
      expect(walled.reason).toContain(walled.wall.text);
      const forged = await decide({ kind: "delete" }, { ...call, taint: [`rooms:/!r/${walled.wall.text}`] });
      expect(forged).toMatchObject({ decision: "ask" });
      expect(forged).not.toHaveProperty("wall");
    });

    it("from home asks where somebody else than the owner would read it", async () => {
      const call = { roomId: HOME, sources: [HOME] };
      expect(await decide({ kind: "create", sendsTo: alone }, call)).toMatchObject({ decision: "ask" });
    });
  });

  describe("in a tainted turn", () => {
    it("it is known of every tool what it reaches", () => {
      expect([...Object.keys(reach), ...ownAffairs].sort()).toEqual(tools.map(({ name }) => name).sort());
      for (const tool of tools.filter(({ name }) => ownAffairs.includes(name)))
        expect(tool.isOwn, tool.name).toBe(true);
    });

    const calls = Object.entries(reach).flatMap(([name, rows]) =>
      rows.map(([kind, given, isOutside]) => ({ name, kind, given, isOutside })),
    );
    it.each(calls)("$name, $kind, $given reaches outside: $isOutside", async ({ name, kind, given, isOutside }) => {
      const input = JSON.parse(JSON.stringify(given).replaceAll("HERE", alone)) as Record<string, unknown>;
      const agent = makeAgent("helper");
      const files = new FileSystem(shares(database()), actorOf(agent, alone), newKey());
      const tool = tools.find((one) => one.name === name);
      const addresses = new WebAddresses(database());
      const place = { addresses, agent, agents: agents(), files, roomId: alone, rooms };
      expect(tool && (await reachesOutside({ ...place, tool, input, kind }))).toBe(isOutside);
    });
  });

  it("what a tool may do besides is what the gate would let through", async () => {
    const table = new Rooms(database());
    const [reading, any] = [here.get("read") ?? alone, here.get(null) ?? alone];
    const may = (roomId: RoomId, level: Level, by: (typeof bys)[number]) =>
      isPermitted("create", { agent: makeAgent("helper", { mode: "create" }), by, level, roomId, rooms: table });
    expect(await may(any, "operate", "model")).toBe(true);
    expect(await may(any, "use", "model")).toBe(false);
    expect(await may(reading, "operate", "model")).toBe(false);
    expect(await may(reading, "operate", "person")).toBe(true);
    expect(await may(reading, "use", "person")).toBe(false);
  });
});
