import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentFields } from "../../src/domain/agents/settings.ts";
import { all, textOf } from "../support/elements.ts";
import { drawImage, upload } from "../support/media.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, type Step, say, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf, chatInterface, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import { listed, ToolServer } from "../support/tool-server.ts";
import type { Message, TestUser } from "../support/user.ts";

const bot = "@clevernet:clevernet.test";
const file = "agents:/helper/long.txt";
const persona = "agents:/personas/agent.md";
const pad = "agents:/scratchpad.txt";

describe("a field of agent.json that is changed while the bridge runs", () => {
  let stage: Stage;
  let server: ToolServer;
  let admin: TestUser;
  let control: string;
  let room: string;
  /** Fields that were changed here: those that nobody changes are named at the end. */
  const changed = new Set<string>();
  beforeAll(async () => {
    server = await ToolServer.start();
    server.tools = [listed("find")];
    const config = { web: { allow: [server.door] }, mcp: { wiki: { url: server.url } } };
    stage = await Stage.set({ database: "postgres", agents: { helper: { mode: "update" } }, config });
    await stage.bridge.start();
    admin = await stage.user("admin");
    await admin.createDirectRoom(bot);
    const invited = () => admin.client.getRooms().find(({ name }) => name === "Clevernet: control room");
    await eventually(() => invited() !== undefined, { what: "the control room" });
    control = String(invited()?.roomId);
    await admin.join(control);
    room = await stage.directRoom(admin);
  });
  afterAll(async () => {
    await stage.strike();
    await server.stop();
  });

  const command = async (line: string, where = control): Promise<string> => {
    const id = await admin.say(where, line);
    const isReply = ({ content }: Message) => content["org.clevernet.command"] === id;
    return (await admin.waitForMessage(where, isReply)).body;
  };
  /** Sets fields of the agent, and puts them back when `then` is done. */
  const set = async (fields: Readonly<Record<string, string>>, then: () => Promise<unknown>): Promise<void> => {
    for (const [field, value] of Object.entries(fields)) {
      expect(await command(`!agent set helper ${field} ${value}`)).toContain(`agent helper: ${field}: `);
      changed.add(field.split(".")[0] ?? field);
    }
    await then();
    for (const field of Object.keys(fields)) await command(`!agent set helper ${field} null`);
  };
  const requestsIn = (where: string) => stage.model.requests.filter((request) => roomOf(request) === where);
  const notices = async (where: string) =>
    (await admin.messages(where)).filter(({ content }) => content.msgtype === "m.notice").map(({ body }) => body);
  let asked = 0;
  /** Asks the agent, which takes one `step` and then answers. @returns all that its model was sent for it */
  const ask = async (step?: (request: ModelRequest) => Step | Step[]): Promise<ModelRequest[]> => {
    const [question, answered] = [`question ${++asked}.`, `answer ${asked}.`];
    const before = stage.model.requests.length;
    stage.model.on(question, (request) =>
      step && callsOf(request).length === 0 ? step(request) : answer(request, answered),
    );
    await admin.say(room, question);
    await admin.waitForMessage(room, ({ body }) => body === answered);
    return stage.model.requests.slice(before).filter((request) => roomOf(request) === room);
  };
  const askOnce = async () => (await ask())[0] as ModelRequest;
  const windowIn = (request: ModelRequest, id: string) =>
    all(chatInterface(request), "window").findLast(({ attributes }) => String(attributes.windowId).startsWith(id));

  it("displayName and avatar: the agent's profile", async () => {
    const avatar = await upload(stage.homeserver, admin, await drawImage(32, 32));
    const is = (...expected: unknown[]) => {
      const look = async () => {
        const { displayname, avatar_url } = await admin.api("GET", `v3/profile/${stage.agentId()}`);
        return JSON.stringify([displayname, avatar_url || undefined]) === JSON.stringify(expected);
      };
      return eventually(look, { what: `the profile ${expected}` });
    };
    await set({ displayName: "Pathfinder", avatar }, () => is("Pathfinder", avatar));
    await is("helper", undefined);
  });

  it("model, temperature, prompts, agentFlags, layout, timeZone, mode and timer: what the model is sent", async () => {
    const fields = {
      model: "other/model",
      temperature: "0.25",
      systemPrompt: "You are the night watch.",
      postPrompt: "All is well?",
      timeZone: "Asia/Kathmandu",
      mode: "read",
      wakeUpTimerSeconds: "600",
      agentFlags: "PreventParallelFunctionCalls",
      layout: "seed",
    };
    await set(fields, async () => {
      const request = await askOnce();
      expect(request.body).toMatchObject({ model: "other/model", temperature: 0.25, parallel_tool_calls: false });
      expect(request.body.messages[0]?.content).toContain("You are the night watch.");
      expect(userText(request)).toMatch(/^<chatInterface .*<\/chatInterface>\s+All is well\?$/s);
      const shown = chatInterface(request);
      expect(shown.attributes).toMatchObject({
        agentUnderlyingModel: "other/model",
        currentDatetime: expect.stringMatching(/ \+0545$/),
      });
      expect(all(shown, "agentParameters").at(-1)?.attributes).toEqual({ wakeUpTimerSeconds: "600", mode: "read" });
      expect(await command("!status", room)).toContain("after 600 s without a turn");
    });
    const request = await askOnce();
    expect(request.body.model).toBe("scripted");
    expect(request.body).not.toHaveProperty("temperature");
    expect(request.body.messages[0]?.content).toContain("You are a helpful assistant.");
    expect(request.body.parallel_tool_calls).not.toBe(false);
    expect(userText(request)).toMatch(/^<chatSystem .*<\/chatInterface>$/s);
  });

  it("personaFile and scratchPadFile: which files stand in the windows, as they are now", async () => {
    await command(`!write ${persona} You are called Nobody.`, room);
    const note = (request: ModelRequest) => ({
      call: toolName(request, "FS_WriteFile"),
      arguments: { path: pad, content: "buy stamps" },
    });
    await set({ personaFile: persona, scratchPadFile: pad }, async () => {
      const request = await askOnce();
      expect(request.body.messages[0]?.content).toContain(`src="${persona}"`);
      expect(request.body.messages[0]?.content).toContain("You are called Nobody.");
      const [empty, written] = (await ask(note)).map((step) => windowIn(step, "scratchpad"));
      expect(empty?.attributes).toMatchObject({ src: pad, contentType: "text/plain", lines: "0", maximized: true });
      expect(all(written, "content").map(textOf)).toEqual(["buy stamps"]);
      await command("!agent set helper persona You are called Somebody.");
      expect((await askOnce()).body.messages[0]?.content).toContain("You are called Somebody.");
    });
    const request = await askOnce();
    expect(request.body.messages[0]?.content).not.toContain("Somebody");
    expect(windowIn(request, "scratchpad")).toBeUndefined();
  });

  it("approxContextCharsMax: how much the model is shown", async () => {
    const chars = ({ body }: ModelRequest) => body.messages.reduce((sum, { content }) => sum + content.length, 0);
    stage.model.on("many words", (request) => answer(request, "so many"), { times: 1 });
    await admin.say(room, "many words ".repeat(1_000));
    await admin.waitForMessage(room, ({ body }) => body === "so many");
    expect(chars(await askOnce())).toBeGreaterThan(9_000);
    await set({ approxContextCharsMax: "8000" }, async () => {
      const request = await askOnce();
      expect(chars(request)).toBeLessThanOrEqual(8_000);
      expect(JSON.stringify(request.body.messages)).toMatch(/truncated|LeftOut/);
    });
  });

  it("windowLines, windowChars and windowTurns: what a window shows, and for how long", async () => {
    const lines = Array.from({ length: 100 }, (_, n) => `line ${n + 1} ${"x".repeat(100)}`).join("\n");
    const open = (request: ModelRequest) => ({ call: toolName(request, "FS_OpenFile"), arguments: { path: file } });
    await command(`!write ${file} ${lines}`, room);
    await set({ windowLines: "30", windowChars: "1000", windowTurns: "5" }, async () => {
      const request = (await ask(open)).at(-1);
      const window = request && windowIn(request, "file_");
      expect(window?.attributes).toMatchObject({ autoCloseInTurns: "5", bottomLineNumber: "9", truncated: true });
      await command("!agent set helper windowChars 100000");
      const later = windowIn(await askOnce(), "file_");
      expect(later?.attributes).toMatchObject({ autoCloseInTurns: "4", bottomLineNumber: "30" });
    });
  });

  it("models: who answers questions about a window, and what is set of whoever thinks", async () => {
    const asks = ({ body }: ModelRequest) => body.messages[0]?.content.startsWith("You answer one question") ?? false;
    stage.model.on(asks, "A hundred.");
    const think = { name: "other/model", temperature: null, reasoning: "low", maxTokens: 900 };
    await set({ models: JSON.stringify({ read: { name: "other/fast" }, think }) }, async () => {
      const { body } = await askOnce();
      expect(body).toMatchObject({ model: "other/model", reasoning_effort: "low", max_tokens: 900 });
      expect(body).not.toHaveProperty("temperature");
      await command(`!open ${file}`, room);
      const id = String(windowIn(await askOnce(), "file_")?.attributes.windowId);
      expect(await command(`!window ${id} query How many lines?`, room)).toContain("A hundred.");
      expect(await command("!agent set helper models.read.name null")).toBe(
        "agent helper: models.read.name: `other/fast` → `the default`",
      );
      await command(`!window ${id} query How many lines are there?`, room);
    });
    expect(stage.model.requests.filter(asks).map(({ body }) => body.model)).toEqual(["other/fast", "other/model"]);
  });

  it("tools and subAgents: what the model is offered", async () => {
    const offered = ({ body }: ModelRequest) => body.tools.map((tool) => tool.function.name.replace(/_\w{4}$/, ""));
    await set({ subAgents: "clerk" }, async () => {
      const [{ content = "" } = {}] = (await askOnce()).body.messages;
      expect(content).toMatch(/- clerk: /);
      expect(content).not.toMatch(/- planner: /);
    });
    expect((await askOnce()).body.messages[0]?.content).toMatch(/- planner: /);
    await set({ tools: '["core","planner"]' }, async () => {
      expect(offered(await askOnce())).toContain("todos_add");
    });
    expect(offered(await askOnce())).not.toContain("todos_add");
  });

  it("network: it is a list of hosts; that it allows no others is held where computers are", async () => {
    expect(await command("!agent set helper network everywhere")).toContain("network: ");
    await set({ network: '["npm"]' }, async () => {
      expect(await command("!agent show helper")).toContain("npm");
    });
  });

  it("images: whether the model is shown them", async () => {
    const send = async (name: string) => {
      stage.model.on(name, (request) => answer(request, `saw ${name}`));
      const url = await upload(stage.homeserver, admin, await drawImage(64, 64));
      await admin.say(room, name, { msgtype: "m.image", url, info: { mimetype: "image/png" } });
      await admin.waitForMessage(room, ({ body }) => body === `saw ${name}`);
      return (
        requestsIn(room)
          .at(-1)
          ?.body.messages.flatMap(({ images }) => images ?? []) ?? []
      );
    };
    await set({ images: "false" }, async () => {
      expect(await send("one.png")).toEqual([]);
    });
    expect(await send("two.png")).toHaveLength(1);
  });

  it("models.see: which model thinks where images are shown", async () => {
    await set({ "models.see.name": "seer" }, async () => {
      const image = await drawImage(64, 64);
      const url = await upload(stage.homeserver, admin, image);
      stage.model.on("three.png", (request) => answer(request, "saw three.png"));
      await admin.say(room, "three.png", { msgtype: "m.image", url, info: { mimetype: "image/png" } });
      await admin.waitForMessage(room, ({ body }) => body === "saw three.png");
      expect(requestsIn(room).at(-1)?.body.model).toBe("seer");
      expect((await askOnce()).body.model).not.toBe("seer");
    });
  });

  it("answer: how people hear the agent", async () => {
    await set({ answer: "text" }, async () => {
      stage.model.on("in words", "In so many words.");
      await admin.say(room, "in words");
      await admin.waitForMessage(room, ({ body }) => body === "In so many words.");
    });
  });

  it("streaming: whether people see an answer grow", async () => {
    await set({ answer: "text", streaming: "true" }, async () => {
      const rest = Promise.withResolvers<void>();
      stage.model.on("slowly", ["One", { wait: rest.promise }, " and two."]);
      await admin.say(room, "slowly");
      await admin.waitForMessage(room, ({ body }) => body === "One");
      rest.resolve();
      await admin.waitForMessage(room, ({ body }) => body === "One and two.");
    });
  });

  it("reply: whom the agent answers", async () => {
    const other = await stage.user("other");
    const company = await stage.room(admin, [other], ["helper"]);
    stage.model.on("hear me", (request) => answer(request, "heard"));
    await set({ reply: "always" }, async () => {
      await admin.say(company, "hear me");
      await admin.waitForMessage(company, ({ body }) => body === "heard");
    });
    await set({ reply: "mention" }, async () => {
      const before = requestsIn(room).length;
      await admin.say(room, "hear me");
      await admin.say(company, "hear me");
      await admin.mention(company, stage.agentId(), "hear me, you");
      await eventually(() => requestsIn(company).length === 2, { what: "the mention to be heard" });
      expect(requestsIn(room)).toHaveLength(before);
    });
  });

  it("maxIterations: how many steps a turn may take", async () => {
    await set({ maxIterations: "2" }, async () => {
      stage.model.on("go round", () => ({ call: "Nothing" }));
      const before = requestsIn(room).length;
      await admin.say(room, "go round");
      await eventually(async () => (await notices(room)).some((body) => body.includes("limit of my steps")), {
        what: "the limit",
      });
      expect(requestsIn(room).length - before).toBe(2);
    });
  });

  it("maxConcurrentTurns: in how many rooms the agent works at once", async () => {
    const elsewhere = await stage.directRoom(admin);
    await set({ maxConcurrentTurns: "1" }, async () => {
      const thinking = Promise.withResolvers<void>();
      stage.model.on("think long", (request) => [
        { wait: thinking.promise },
        say(request, room, "thought", { final: true }),
      ]);
      await admin.say(room, "think long");
      await stage.model.request("think long");
      stage.model.on("me too", (request) => answer(request, "you too"));
      await admin.say(elsewhere, "me too");
      expect(await command("!status", elsewhere)).toContain("at work here: no");
      expect(requestsIn(elsewhere)).toEqual([]);
      thinking.resolve();
      await admin.waitForMessage(elsewhere, ({ body }) => body === "you too");
    });
  });

  it("autoJoinInvites: whether invitations are accepted", async () => {
    await set({ autoJoinInvites: "false" }, async () => {
      const refused = await admin.createDirectRoom(stage.agentId());
      await admin.waitForMembership(refused, "leave", stage.agentId());
    });
    await stage.directRoom(admin);
  });

  it("budget: what the agent may spend", async () => {
    await set({ budget: '{"tokens":1}' }, async () => {
      await admin.say(room, "spend");
      await eventually(async () => (await notices(room)).some((body) => body.startsWith("My budget for today")), {
        what: "the end of the budget",
      });
    });
    await askOnce();
  });

  it("reloadEphemeris: whether the agent remembers what it thought before the last start", async () => {
    const remembered = async () => JSON.stringify((await askOnce()).body.messages).includes("A thought to remember.");
    await ask((request) => [
      "A thought to remember.",
      { call: toolName(request, "FS_Tree"), arguments: { path: "agents:/helper" } },
    ]);
    expect(await remembered()).toBe(true);
    await stage.bridge.stop();
    await stage.bridge.start();
    expect(await remembered()).toBe(true);
    await set({ reloadEphemeris: "false" }, async () => {
      expect(await remembered()).toBe(false);
    });
    expect(await remembered()).toBe(true);
  });

  it("mcp: the servers whose tools the agent has", async () => {
    await eventually(async () => (await command("!mcp list", room)).includes("answers"), { what: "the server" });
    const offered = async () => JSON.stringify((await askOnce()).body.tools).includes("wiki__find_");
    await set({ mcp: '["wiki"]' }, async () => expect(await offered()).toBe(true));
    expect(await offered()).toBe(false);
  });

  it("followUpAfterSeconds: when the agent speaks up by itself", async () => {
    const line = "speaks up here by itself: after 10 minutes without an answer";
    await set({ followUpAfterSeconds: "600" }, async () => expect(await command("!status", room)).toContain(line));
    expect(await command("!status", room)).not.toContain("speaks up");
  });

  it("defaultMode: the agent is woken to tidy its memory where nothing has happened for long", async () => {
    await set({ defaultMode: '{"afterSeconds":600}' }, async () => {
      await stage.bridge.stop();
      const earlier = (column: string) => `${column} = ${column} - interval '1 hour'`;
      await stage.query(`update turns set ${earlier("started_at")}, ${earlier("ended_at")}`);
      await stage.query(`update rooms set ${earlier("last_shown_at")}`);
      const isTidying = (request: ModelRequest) => userText(request).includes('wakeReason="default mode"');
      stage.model.on(isTidying, () => "All is tidy.");
      await stage.bridge.start();
      await eventually(async () => stage.model.requests.some(isTidying), { what: "the default mode", within: 30_000 });
    });
  });

  it("is each field that there is", () => {
    expect([...changed].sort()).toEqual(Object.keys(agentFields).sort());
  });
});
