import { describe, expect, it } from "vitest";
import { type AgentSettings, agentFields, parseAgentSettings } from "../../../src/domain/agents/settings.ts";

const where = "agents:/helper/agent.json";
const parse = (json: unknown): AgentSettings => parseAgentSettings(json, where);
const refusal = (json: unknown): string => {
  try {
    parse(json);
  } catch (error) {
    return String(error);
  }
  throw new Error("it was accepted");
};

describe("agent settings", () => {
  it("are complete when nothing is written", () => {
    expect(parse({})).toEqual({
      displayName: null,
      avatar: null,
      budget: null,
      model: null,
      models: {},
      systemPrompt: "You are a helpful assistant.",
      wakeUpTimerSeconds: 3600,
      followUpAfterSeconds: null,
      defaultMode: null,
      autoJoinInvites: true,
      temperature: 1,
      personaFile: null,
      scratchPadFile: null,
      approxContextCharsMax: 50_000,
      windowLines: 20,
      windowChars: 8_000,
      windowTurns: 2,
      postPrompt: null,
      agentFlags: [],
      reloadEphemeris: true,
      mode: "create",
      tools: ["core", "memory", "sandbox", "web"],
      subAgents: null,
      network: null,
      layout: "cacheable",
      images: true,
      answer: "tool",
      streaming: false,
      reply: "auto",
      maxConcurrentTurns: 4,
      mcp: [],
      maxIterations: null,
      timeZone: "UTC",
    });
  });

  it("take the source document's example but for its login", () => {
    const settings = parse({
      displayName: "Friendly Agent",
      model: "anthropic/claude-3-opus-20240229",
      systemPrompt: "You are a helpful assistant...",
      wakeUpTimerSeconds: 3600,
      autoJoinInvites: true,
      temperature: 1.0,
      personaFile: "agents:/personas/agent.md",
      scratchPadFile: "agents:/scratchpad.txt",
      approxContextCharsMax: 50000,
      postPrompt: null,
      agentFlags: "PreventParallelFunctionCalls",
      reloadEphemeris: true,
    });
    expect(settings).toMatchObject({
      displayName: "Friendly Agent",
      personaFile: "agents:/personas/agent.md",
      agentFlags: ["PreventParallelFunctionCalls"],
    });
  });

  it("refuse a login with the reason", () => {
    expect(refusal({ loginUsername: "@agent:matrix.org", loginPassword: "password" })).toContain(
      "loginPassword is not used: agents are users of the application service and have no password; take it out",
    );
  });

  it("read several flags from one text", () => {
    const { agentFlags } = parse({ agentFlags: "PreventFunctionCallsWithoutThoughts , PreventParallelFunctionCalls," });
    expect(agentFlags).toEqual(["PreventFunctionCallsWithoutThoughts", "PreventParallelFunctionCalls"]);
  });

  it("name the known flags when one is unknown", () => {
    expect(refusal({ agentFlags: "PreventParallelFunctionCalls,PreventAll" })).toContain(
      'agentFlags: found "PreventParallelFunctionCalls,PreventAll", expected PreventParallelFunctionCalls, PreventFunctionCallsWithoutThoughts',
    );
  });

  it("suggest the key that was meant", () => {
    expect(refusal({ temprature: 1 })).toContain('unknown key "temprature", did you mean "temperature"?');
    expect(refusal({ colour: 1 })).toContain('unknown key "colour", known are displayName, avatar, model');
  });

  it("name the file, every mistake, what was found and what is expected", () => {
    const message = refusal({ wakeUpTimerSeconds: 59, mode: "all", tools: ["core", "shell"], temperature: "hot" });
    expect(message.split("\n")).toEqual([
      `UserError: ${where} cannot be used:`,
      "  wakeUpTimerSeconds: found 59, expected a whole number of seconds, from 60 to 31536000 (a year), or null for never",
      '  temperature: found "hot", expected a number from 0 to 2, or null to send none',
      '  mode: found "all", expected one of none, read, create, update, delete',
      '  tools[1]: found "shell", expected one of core, memory, sandbox, web, planner, librarian',
    ]);
  });

  it("are refused where nobody could ever hear the agent, with what to do", () => {
    for (const tools of [[], ["planner"], ["memory", "web"]]) {
      expect(refusal({ tools }).split("\n")).toEqual([
        `UserError: ${where} cannot be used:`,
        "  tools: found a list, expected core among them: with answer: tool the agent speaks by its function SendMessage alone, which is in that set. Add core, or set answer to text",
      ]);
      expect(parse({ tools, answer: "text" })).toMatchObject({ tools });
    }
  });

  it.each([null, [], "text", 5])("are no %j", (json) => {
    expect(refusal(json)).toContain("expected settings (displayName, ");
  });

  const values: readonly (readonly [keyof AgentSettings, unknown[], unknown[]])[] = [
    ["displayName", ["Mia", null], ["", " ", 5, "a\0b", "\ud800"]],
    ["avatar", ["mxc://example.org/AbC_-1", null], ["https://example.org/a.png", "mxc://example.org", "mxc://a/b/c"]],
    ["model", ["other/model", null], ["", 5, "m\0"]],
    [
      "models",
      [{}, { read: { name: "other/fast" } }, { think: { temperature: null, reasoning: "high", maxTokens: 1 } }],
      [
        null,
        "other/fast",
        { draw: {} },
        { read: "other/fast" },
        { read: { name: "" } },
        { think: { reasoning: "hard" } },
      ],
    ],
    ["systemPrompt", ["", "Be brief."], [null, 5, "a\0b", "\ud800"]],
    ["postPrompt", ["Think.", null], [5, "a\0b"]],
    ["wakeUpTimerSeconds", [60, 31_536_000, null], [59, 60.5, "60", -1, 31_536_001, 2 ** 31]],
    ["followUpAfterSeconds", [60, 86_400, null], [59, 86_401, 60.5, "600"]],
    [
      "defaultMode",
      [null, {}, { afterSeconds: 600 }, { budget: { usd: 0.1 } }],
      [
        true,
        5,
        { afterSeconds: 599 },
        { afterSeconds: null },
        { budget: null },
        { budget: { tokens: -1 } },
        { after: 600 },
      ],
    ],
    ["autoJoinInvites", [true, false], [null, "yes", 1]],
    ["temperature", [0, 2, 0.7, null], [-0.1, 2.1, "hot"]],
    [
      "personaFile",
      ["agents:/helper/persona.md"],
      ["/etc/passwd", "agents:", "agents:/", "file:///a", "C:/a", "rooms:/!a:b/c", "users:/@a:b/c", "agents:/a/../b"],
    ],
    ["scratchPadFile", ["agents:/helper/pad.txt", null], ["pad.txt", "rooms:/!a:b/c", "system:/a", ""]],
    ["approxContextCharsMax", [8000], [7999, 1e9]],
    ["windowLines", [1, 1000], [0, 1001, null]],
    ["windowChars", [500, 1_000_000], [499, 1_000_001]],
    ["windowTurns", [1, 100], [0, 101]],
    ["reloadEphemeris", [true, false], [null, "yes"]],
    ["mode", ["none", "read", "create", "update", "delete"], ["all", null]],
    ["tools", [["core"], ["core", "planner"]], ["core", ["shell"], null]],
    ["mcp", [[], ["wiki"]], [null, "wiki", [""], [5]]],
    ["subAgents", [null, [], ["clerk"]], ["clerk", [""], [5]]],
    ["images", [true, false], [null, "no"]],
    ["budget", [null, {}, { tokens: 0 }, { usd: 0.5 }], [5, { tokens: -1 }, { tokens: 0.5 }, { usd: "5" }, { eur: 5 }]],
    ["agentFlags", [""], [[], null, "preventparallelfunctioncalls"]],
    ["network", [null, [], ["npm", ".example.org"]], ["npm", ["localhost"], ["10.0.0.1"], ["https://a.org"], [5]]],
    ["layout", ["seed"], ["other"]],
    ["answer", ["tool", "text"], ["both"]],
    ["streaming", [true, false], [null, "yes"]],
    ["reply", ["auto", "mention", "always"], ["never"]],
    ["maxConcurrentTurns", [1, 32], [0, 33]],
    ["maxIterations", [1, 25], [0, 26]],
    ["timeZone", ["Europe/Berlin", "UTC", "Asia/Kolkata"], ["Berlin", "+01:00", "", "Mars/Olympus"]],
  ];
  it.each(values)("hold %s to its values", (key, good, bad) => {
    for (const value of good) expect(parse({ [key]: value })).toHaveProperty(key);
    for (const value of bad) expect(refusal({ [key]: value }), JSON.stringify(value)).toMatch(`  ${key}`);
  });

  it("are each held to their values here", () => {
    expect(values.map(([key]) => key).sort()).toEqual(Object.keys(agentFields).sort());
  });
});
