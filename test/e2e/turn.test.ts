import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nobodyHeardYou } from "../../src/base/prompt/reminders.ts";
import { all, textOf } from "../support/elements.ts";
import { eventually } from "../support/poll.ts";
import { type Reply, say, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf, chatInterface, remindersOf, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const scratchPadFile = "agents:/noter/scratchpad.md";

describe("a turn", () => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: {
        helper: {},
        talker: { answer: "text" },
        single: { agentFlags: "PreventParallelFunctionCalls" },
        thinker: { agentFlags: "PreventFunctionCallsWithoutThoughts" },
        noter: {
          owner: "@ann:clevernet.test",
          scratchPadFile,
          postPrompt: "Remember the milk.",
          model: "some/model",
          temperature: 0.25,
        },
      },
    });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  const requestsIn = (room: string) => stage.model.requests.filter((request) => roomOf(request) === room);
  const heardIn = async (room: string) =>
    (await ann.messages(room)).filter(({ sender }) => sender !== ann.id).map(({ body }) => body);
  /** Asks an agent in a room of its own, and waits for what it says last. */
  const ask = async (agent: string, question: string, reply: Reply, last: string | RegExp) => {
    const room = await stage.directRoom(ann, agent);
    stage.model.on((request) => roomOf(request) === room, reply);
    await ann.say(room, question);
    const said = (body: string) => (typeof last === "string" ? body === last : last.test(body));
    await ann.waitForMessage(room, ({ sender, body }) => sender !== ann.id && said(body));
    return room;
  };

  it("that says its last word with `final` makes no further model call", async () => {
    const room = await ask("helper", "hello", (request) => answer(request, "bye"), "bye");
    await quiet();
    expect(requestsIn(room)).toHaveLength(1);
  });

  it("that was asked and says nothing gets exactly one reminder, and may then keep silent", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on("say nothing", "I would rather not.");
    await ann.say(room, "say nothing");
    await eventually(() => requestsIn(room).length === 2, { what: "the reminder" });
    await quiet();
    expect(requestsIn(room).map((request) => remindersOf(request).includes(nobodyHeardYou))).toEqual([false, true]);
    expect(await heardIn(room)).toEqual([]);
  });

  it("that has said something is shown it as sent, and may end without a further word", async () => {
    const room = await ask(
      "helper",
      "hello",
      (request) => (callsOf(request).length === 0 ? say(request, roomOf(request), "said") : "done"),
      "said",
    );
    await eventually(() => requestsIn(room).length === 2, { what: "the second step" });
    await quiet();
    const [, second] = requestsIn(room);
    expect(second && callsOf(second)[0]?.result).toMatch(
      /^<message systemId="clevernet.test" roomId="!.*" timestamp="20.*Z" sender="@agent_helper:clevernet.test" messageType="m.text" sent>said<\/message>$/,
    );
    expect(requestsIn(room)).toHaveLength(2);
    expect(await heardIn(room)).toEqual(["said"]);
  });

  it("ends at ten steps with one notice, and the agent finds a systemEvent that says so", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on("busy", [{ call: "Nothing" }]);
    stage.model.on("well?", (request) => answer(request, "well."));
    await ann.say(room, "busy");
    await ann.waitForMessage(room, ({ content }) => content.msgtype === "m.notice");
    expect(requestsIn(room)).toHaveLength(10);
    await ann.say(room, "well?");
    await ann.waitForMessage(room, ({ body }) => body === "well.");
    expect(await heardIn(room)).toEqual([expect.stringContaining("limit of my steps"), "well."]);
    const next = requestsIn(room)[10];
    const events = next ? all(roomSeen(next, "ephemeris"), "systemEvent").map(textOf) : [];
    expect(events).toEqual(["The turn ended: It reached its limit of 10 steps."]);
  });

  it("gets unknown functions and invalid arguments back as results", async () => {
    const room = await ask(
      "helper",
      "try",
      (request) => {
        const name = toolName(request, "SendMessage");
        const mistakes = [
          { call: "Explode" },
          { call: name, arguments: {} },
          { call: name, arguments: { content: "x", volume: 11 } },
          { call: name, arguments: { content: "x", roomId: "!elsewhere:clevernet.test" } },
        ];
        return callsOf(request).length === 0 ? mistakes : answer(request, "I see");
      },
      "I see",
    );
    const second = requestsIn(room)[1];
    expect(second && callsOf(second).map(({ result }) => result)).toEqual([
      expect.stringMatching(/^There is no function Explode. Functions: .*SendMessage_/),
      expect.stringContaining("content: "),
      expect.stringContaining("volume"),
      expect.stringContaining("was not carried out"),
    ]);
    expect(await heardIn(room)).toEqual(["I see"]);
  });

  it("that says a long text sends it in parts, in order and complete", async () => {
    const paragraphs = Array.from({ length: 80 }, (_, index) => `${index} ${"words ".repeat(80)}end`);
    const text = paragraphs.join("\n\n");
    const room = await ask("helper", "tell me all", (request) => answer(request, text), /79 words/);
    const parts = await heardIn(room);
    expect(parts).toHaveLength(3);
    expect(parts.join("\n\n").split(/\s+/)).toEqual(text.split(/\s+/));
  });

  it("shows the agent as typing while it runs, and no longer", async () => {
    const thinking = Promise.withResolvers<void>();
    const room = await stage.directRoom(ann);
    stage.model.on("take your time", (request) => [{ wait: thinking.promise }, answer(request, "done")]);
    await ann.say(room, "take your time");
    await eventually(() => ann.typing(room).includes(stage.agentId()), { what: "the agent to be typing" });
    thinking.resolve();
    await ann.waitForMessage(room, ({ body }) => body === "done");
    await eventually(() => ann.typing(room).length === 0, { what: "nobody to be typing" });
  });

  it("with `answer: text` sends its last text, and no other", async () => {
    const reply: Reply = (request) =>
      callsOf(request).length === 0 ? ["Let me see.", { call: "Look" }] : "It is **noon**.";
    const room = await ask("talker", "what time?", reply, "It is **noon**.");
    await quiet();
    expect(await heardIn(room)).toEqual(["It is **noon**."]);
  });

  it("with PreventParallelFunctionCalls carries out the first call of a step alone", async () => {
    const reply: Reply = (request) =>
      callsOf(request).length === 0
        ? [say(request, roomOf(request), "one"), say(request, roomOf(request), "two")]
        : answer(request, "three");
    const room = await ask("single", "count", reply, "three");
    expect(await heardIn(room)).toEqual(["one", "three"]);
    const [first, second] = requestsIn(room);
    expect(first?.body.parallel_tool_calls).toBe(false);
    expect(second && callsOf(second)[1]?.result).toContain("Not carried out");
  });

  it("with PreventFunctionCallsWithoutThoughts carries out only calls that come with a thought", async () => {
    const reply: Reply = (request) =>
      callsOf(request).length === 0 ? answer(request, "rash") : ["I think so.", answer(request, "considered")];
    const room = await ask("thinker", "go", reply, "considered");
    expect(await heardIn(room)).toEqual(["considered"]);
  });

  describe("of an agent with a scratchpad, a postPrompt, and a model of its own", () => {
    let room: string;
    beforeAll(async () => {
      await stage.query(
        `insert into files (share, path, content_type, text_content, owner)
         values ('agents', '/noter/scratchpad.md', 'text/markdown', 'buy </content> stamps', '@admin:clevernet.test')`,
      );
      room = await ask("noter", "hello", (request) => answer(request, "noted"), "noted");
    });
    const request = () => {
      const [first] = requestsIn(room);
      if (!first) throw new Error("no request");
      return first;
    };

    it("ends with the postPrompt, after everything else", () => {
      expect(userText(request())).toMatch(/<\/chatInterface>\s+Remember the milk\.$/);
    });

    it("shows the scratchpad in a window", () => {
      const pad = all(chatInterface(request()), "window").find((window) => window.attributes.windowId === "scratchpad");
      expect(pad?.attributes.src).toBe(scratchPadFile);
      expect(all(pad, "content").map(textOf)).toEqual(["buy </content> stamps"]);
    });

    it("asks that model, with the agent's temperature", () => {
      expect(request().body).toMatchObject({ model: "some/model", temperature: 0.25 });
    });
  });

  it("leaves nothing unfinished, and sends nothing twice or out of order", () => stage.check());

  /** Every turn has ended, so that nothing more comes of what was said. */
  async function quiet(): Promise<void> {
    const count = "select count(*)::int as n from turns where state = 'running'";
    const ended = async () => (await stage.query<{ n: number }>(count))[0]?.n === 0;
    await eventually(ended, { what: "all turns to end" });
  }
});
