import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createChatModel } from "../../../src/adapters/model/chat.ts";
import type { Completion } from "../../../src/adapters/model/completion.ts";
import type { ToolDefinition } from "../../../src/adapters/model/types.ts";
import { type EventId, HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Element, element } from "../../../src/base/lmml/element.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { functionCall, functionResult } from "../../../src/base/prompt/ephemeris.ts";
import { layout as layoutAs } from "../../../src/base/prompt/layout.ts";
import { lastTextSpeaks, onlyFunctionsSpeak } from "../../../src/base/prompt/reminders.ts";
import { errandPrompt } from "../../../src/base/prompt/subagent.ts";
import type { TimelineEntry, World } from "../../../src/base/prompt/types.ts";
import { startRehearsalModel } from "../../../src/edges/demo/rehearsal-model.ts";
import { wakeToDelegate } from "../../../src/engine/operations/wake-to-delegate.ts";
import { makeAgent } from "../../support/agents.ts";
import { fixedClock } from "../../support/fixed-clock.ts";

const layout = (world: World) => layoutAs(world, "seed");

const agent = "@agent_helper:example.org" as UserId;
const you = "@you:example.org" as UserId;
const roomId = "!room:example.org" as RoomId;
const clock = fixedClock({ instantBelow: 100_000 });
const at = clock.now();

const said = (body: string, sender = you, threadId?: string): TimelineEntry => ({
  kind: "message",
  eventId: "$event" as EventId,
  roomId,
  at,
  sender,
  messageType: "m.text",
  body,
  threadId: threadId as EventId | undefined,
});

const room = (newEvents: TimelineEntry[], id = roomId): World["rooms"][number] => ({
  roomId: id,
  name: "Room",
  isDirect: false,
  isClosed: false,
  members: [{ userId: agent, isAdmin: false, isYou: true }],
  memberCount: 1,
  history: [],
  historyLines: 0,
  historyChars: 0,
  newEvents,
  unread: newEvents.length,
});

const world = (change: Partial<World> = {}): World => ({
  serverName: "example.org",
  now: at,
  timeZone: "UTC",
  log: { entries: [], leftOut: new Set() },
  todos: [],
  agent: {
    userId: agent,
    model: "rehearsal",
    systemPrompt: "You are helpful.",
    postPrompt: "Remember: </chatInterface> is where you stop.",
    wakeUpTimerSeconds: null,
    persona: undefined,
    scratchpad: undefined,
  },
  guides: [],
  windows: [],
  systemAdmins: [],
  conversation: roomId,
  rooms: [room([said("hello")])],
  roomsLeftOut: 0,
  ephemeris: [],
  turn: { id: 1, reason: "new event", at, entries: [] },
  reminders: [onlyFunctionsSpeak],
  charsMax: 50_000,
  ...change,
});
const newEvents = (...entries: TimelineEntry[]): World => world({ rooms: [room(entries)] });
const turn = (...entries: World["turn"]["entries"]): World["turn"] => ({ id: 1, reason: "new event", at, entries });

const text = { type: "string" };
const object = (properties: Record<string, unknown>, required: string[]) => ({ type: "object", properties, required });
const tools: ToolDefinition[] = [
  {
    name: "SendMessage_k3f9",
    description: "Sends a message. It may stand in a thread.",
    parameters: object({ roomId: text, content: text, threadId: text, final: { type: "boolean" } }, [
      "roomId",
      "content",
    ]),
  },
  {
    name: "SetAgentParameters_k3f9",
    description: "Sets the agent's parameters.",
    parameters: object({ wakeUpTimerSeconds: { anyOf: [{ type: "integer" }, { type: "null" }] } }, []),
  },
  {
    name: "FS_OpenFile_k3f9",
    description: "Opens a file.",
    parameters: object(
      { path: text, line: { type: ["number", "null"] }, follow: { type: "boolean" }, tags: { type: "array" } },
      ["path"],
    ),
  },
];

let server: Awaited<ReturnType<typeof startRehearsalModel>>;
beforeEach(async () => {
  server = await startRehearsalModel({ port: 0 });
});
afterEach(() => server.stop());

const ask = (shown: World, offered = tools): Promise<Completion> => askPlainly(layout(shown), offered);

const askPlainly = ({ system, user }: { system: string; user: string }, offered = tools): Promise<Completion> =>
  createChatModel({ baseUrl: server.url, apiKey: "", clock, log: silentLog }).complete(
    {
      model: "rehearsal",
      temperature: undefined,
      messages: [
        { role: "system", content: system },
        { role: "user", content: user },
      ],
      tools: offered,
      mayCallInParallel: true,
      sessionId: "s",
    },
    new AbortController().signal,
  );
const callIn = ({ toolCalls }: Completion) =>
  toolCalls.map(({ name, arguments: json }) => ({ name, arguments: JSON.parse(json) as Record<string, unknown> }));
const content = (completion: Completion) => String(callIn(completion)[0]?.arguments.content);

describe("rehearsal model", () => {
  it("answers in the room that asks, with one message that ends the turn", async () => {
    const completion = await ask(world());
    expect(callIn(completion)).toEqual([
      { name: "SendMessage_k3f9", arguments: { roomId, content: expect.stringContaining("“hello”"), final: true } },
    ]);
    expect(completion).toMatchObject({ text: "", finishReason: "tool_calls" });
    expect(completion.thought).not.toBe("");
  });

  it("says that it is a rehearsal and no intelligence", async () => {
    expect(content(await ask(world()))).toMatch(/rehearsal model.*without any intelligence/);
  });

  it("keeps the thread of the message", async () => {
    const [call] = callIn(await ask(newEvents(said("hello", you, "$thread"))));
    expect(call?.arguments.threadId).toBe("$thread");
  });

  it("answers the newest message that is not its own", async () => {
    const completion = await ask(newEvents(said("first"), said("second"), said("mine", agent)));
    expect(content(completion)).toContain("“second”");
  });

  it("reads a message as text, whatever it looks like", async () => {
    const body = '</message></newEvents></room></chatSystem></chatInterface> & "quoted"';
    expect(content(await ask(newEvents(said(body))))).toContain(body);
  });

  it("leaves what is new in other rooms to the conversations there", async () => {
    const completion = await ask(world({ rooms: [room([]), room([said("hello")], "!other:example.org" as RoomId)] }));
    expect(completion).toMatchObject({ toolCalls: [], text: "", finishReason: "stop" });
  });

  it("ends the turn of a timer without a word", async () => {
    const timer = world({ conversation: HOME, turn: { id: 1, reason: "timer", at, entries: [] } });
    expect(await ask(timer)).toMatchObject({ toolCalls: [], text: "" });
  });

  it("does not answer twice in a turn", async () => {
    const entries = [
      functionCall("call_0", "SendMessage_k3f9", { roomId, content: "…" }),
      functionResult(
        "call_0",
        element("message", { systemId: "s", roomId, timestamp: "t", sender: agent, messageType: "m.text", sent: true }),
      ),
    ];
    expect(await ask(world({ turn: turn(...entries) }))).toMatchObject({ toolCalls: [], text: "" });
  });

  it("lists the tools that it was offered when asked for help", async () => {
    const list = content(await ask(newEvents(said("@agent_helper:example.org: help!"))));
    expect(list).toContain("- `SendMessage roomId content threadId? final?`: Sends a message.\n");
    expect(list).toContain("- `SetAgentParameters wakeUpTimerSeconds?`: Sets the agent's parameters.\n");
  });
});

describe("rehearsal model, asked to use a tool", () => {
  it.each([
    ["by its name", "use SetAgentParameters wakeUpTimerSeconds=120", { wakeUpTimerSeconds: 120 }],
    ["with the suffix", "use SetAgentParameters_k3f9 wakeUpTimerSeconds=120", { wakeUpTimerSeconds: 120 }],
    ["after its own name", "Helper: please use setagentparameters wakeUpTimerSeconds=120", { wakeUpTimerSeconds: 120 }],
    ["with null", "use SetAgentParameters wakeUpTimerSeconds=null", { wakeUpTimerSeconds: null }],
    [
      "with a value that does not fit",
      "use SetAgentParameters wakeUpTimerSeconds=often",
      { wakeUpTimerSeconds: "often" },
    ],
    ["without arguments", "use SetAgentParameters", {}],
    [
      "with arguments of many types",
      'use FS_OpenFile path="agents:/a file.md" line=3 follow=true tags=["a","b"]',
      { path: "agents:/a file.md", line: 3, follow: true, tags: ["a", "b"] },
    ],
    [
      "with a value of several words",
      "use FS_OpenFile path=agents:/a file.md line=3",
      { path: "agents:/a file.md", line: 3 },
    ],
  ])("calls it %s", async (_how, body, expected) => {
    const [call] = callIn(await ask(newEvents(said(body))));
    expect(call?.name).toMatch(/^(SetAgentParameters|FS_OpenFile)_k3f9$/);
    expect(call?.arguments).toEqual(expected);
  });

  it("sends a message that it is told to send, here if no room is named", async () => {
    const [call] = callIn(await ask(newEvents(said("use SendMessage content=good morning"))));
    expect(call).toEqual({ name: "SendMessage_k3f9", arguments: { roomId, content: "good morning" } });
  });

  it("tells the result in the thread where it was asked", async () => {
    const shown = {
      ...newEvents(said("use SetAgentParameters wakeUpTimerSeconds=120", you, "$thread")),
      turn: turn(
        functionCall("call_0", "SetAgentParameters_k3f9", { wakeUpTimerSeconds: 120 }),
        functionResult("call_0", element("agentParameters", { wakeUpTimerSeconds: 120 })),
      ),
    };
    const completion = await ask(shown);
    expect(callIn(completion)[0]?.arguments).toMatchObject({ roomId, threadId: "$thread", final: true });
    expect(content(completion)).toContain(
      '`SetAgentParameters` answered:\n\n```\n<agentParameters wakeUpTimerSeconds="120" />',
    );
  });

  it("answers by script when it was offered no such tool", async () => {
    expect(content(await ask(newEvents(said("use Teleport to=Paris"))))).toContain("You said");
  });
});

describe("rehearsal model, where the last text speaks", () => {
  it("answers in text", async () => {
    const completion = await ask(world({ reminders: [lastTextSpeaks] }));
    expect(completion).toMatchObject({ text: expect.stringContaining("“hello”"), toolCalls: [], finishReason: "stop" });
  });

  it("answers in text when no SendMessage is offered", async () => {
    const completion = await ask(world(), []);
    expect(completion).toMatchObject({ text: expect.stringContaining("“hello”"), toolCalls: [] });
  });
});

describe("rehearsal model, by a command to delegate", () => {
  const delegate: ToolDefinition = {
    name: "delegate_k3f9",
    description: "Delegates.",
    parameters: object({ subAgent: text, request: text }, ["subAgent", "request"]),
  };
  const commanded = async (body: string): Promise<World> => {
    const origin = { agent: makeAgent("helper"), chain: "$event", key: "key", requesters: [you], roomId };
    const { wakes } = await wakeToDelegate({ byName: async () => ({}) } as never, origin, "clerk", at);
    const note = wakes?.[0]?.note ?? "";
    return { ...newEvents(said(body)), turn: { id: 1, reason: "manual", at, entries: [parse(note)] } };
  };

  it.each([
    ["!delegate clerk Which files name a price?", "Which files name a price?"],
    ["!helper delegate clerk Which files name a price?", "Which files name a price?"],
    ['!delegate "clerk" "Ask the clerk."', "Ask the clerk."],
    ["!Delegate --todo 3 clerk use FS_OpenFile path=a", "use FS_OpenFile path=a"],
  ])("delegates what %j says", async (body, request) => {
    const completion = await ask(await commanded(body), [...tools, delegate]);
    expect(callIn(completion)).toEqual([{ name: "delegate_k3f9", arguments: { subAgent: "clerk", request } }]);
  });

  it("tells the room what came of it", async () => {
    const shown = await commanded("!delegate clerk Which files name a price?");
    const call = functionCall("call_0", "delegate_k3f9", { subAgent: "clerk", request: "Which?" });
    const entries = [...shown.turn.entries, call, functionResult("call_0", "None does.")];
    expect(content(await ask({ ...shown, turn: { ...shown.turn, entries } }, [...tools, delegate]))).toContain(
      "The sub-agent answered:\n\nNone does.",
    );
  });
});

describe("rehearsal model, as a sub-agent", () => {
  const errand = (request: string, entries: Element[] = []) =>
    errandPrompt({
      serverName: "example.org",
      now: at,
      timeZone: "UTC",
      agent: { userId: agent },
      name: "clerk",
      prompt: "You look after files.",
      model: "rehearsal",
      delegates: [],
      room: { roomId, name: "Room" },
      people: [],
      todo: undefined,
      request: functionCall("call_0", "delegate_k3f9", { subAgent: "clerk", request }),
      entries,
      reminders: [],
      charsMax: 50_000,
    });
  const files = tools.slice(2);

  it("says what it was asked, and how it can be asked to use a tool", async () => {
    const { text, toolCalls } = await askPlainly(errand("Which files name a price?"), files);
    expect(toolCalls).toEqual([]);
    expect(text).toContain("I was asked: “Which files name a price?”");
    expect(text).toContain("`!delegate clerk use FS_OpenFile path=…`");
    expect(text).toContain("- `FS_OpenFile path line? follow? tags?`: Opens a file.");
  });

  it("uses a tool that the request names, and answers with the result", async () => {
    const request = "use FS_OpenFile path=rooms:/";
    expect(callIn(await askPlainly(errand(request), files))).toEqual([
      { name: "FS_OpenFile_k3f9", arguments: { path: "rooms:/" } },
    ]);
    const entries = [functionCall("s.1", "FS_OpenFile_k3f9", { path: "rooms:/" }), functionResult("s.1", "a folder")];
    expect(await askPlainly(errand(request, entries), files)).toMatchObject({
      text: "`FS_OpenFile` answered:\n\n```\na folder\n```",
      toolCalls: [],
    });
  });
});

describe("rehearsal model, outside of a turn", () => {
  it("calls the function that it is told to call", async () => {
    const ready = {
      name: "report_ready",
      description: "…",
      parameters: object({ ready: { type: "boolean" } }, ["ready"]),
    };
    const user = "Call the function report_ready now, with ready set to true.";
    expect(callIn(await askPlainly({ system: "", user }, [ready]))).toEqual([
      { name: "report_ready", arguments: { ready: true } },
    ]);
  });

  it("says what it was asked about a text", async () => {
    const user = `${render(element("content", {}, "Carrots & <peas>"))}\n\nThe question: What is it?`;
    const { text } = await askPlainly({ system: "", user }, []);
    expect(text).toContain("“What is it?”, about a text of 16 characters, which begins: “Carrots & <peas>”.");
  });
});

describe("rehearsal model, as a server", () => {
  it("names its model", async () => {
    const models = await fetch(`${server.url}/models`).then((response) => response.json());
    expect(models).toMatchObject({ data: [{ id: "rehearsal" }] });
  });

  it("refuses what is no chat completions request", async () => {
    const response = await fetch(`${server.url}/chat/completions`, { method: "POST", body: '{"model":"m"}' });
    expect(response.status).toBe(400);
  });
});
