import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, newMessages, type Step, say, toolName, userText } from "../support/scripted-model.ts";
import { roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const turns = 50;
const filler = "The tide tables of the harbour were compared once more, line by line. ".repeat(19);

describe("memory of an agent that works for long", () => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "embedded",
      agents: { helper: { approxContextCharsMax: 20_000 } },
      permissions: { "@ann:clevernet.test": "admin" },
    });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  /** Number of calls that the turn has made so far. */
  const stepsIn = ({ body }: ModelRequest) => body.messages.filter(({ role }) => role === "tool").length;
  const call = (request: ModelRequest, tool: string, args: object): Step => ({
    call: toolName(request, tool),
    arguments: args,
  });
  const said = (room: string, text: string) =>
    ann.waitForMessage(room, ({ body }) => body === text, { within: 60_000 });

  it("an agent that is killed after its research goes on with the outline when it is told to continue", async () => {
    const room = await stage.directRoom(ann);
    const status = { new_status_text: "A post about tides; the research is done", next_step: "Outline the post" };
    const research = (request: ModelRequest): Step => {
      const steps = stepsIn(request);
      if (steps === 0)
        return call(request, "FS_WriteFile", { path: "research.md", content: "The moon draws the sea." });
      return steps === 1 ? call(request, "update_status", status) : { hangs: true };
    };
    stage.model.on("Research tides", research, { times: 3 });
    await ann.say(room, "Research tides, and outline a blog post.");
    await stage.model.request((request) => stepsIn(request) === 2);
    await stage.bridge.kill();
    stage.model.on(
      (request) => roomOf(request) === room && !userText(request).includes(">Continue<"),
      (request) => say(request, room, "The research is done.", { final: true }),
    );
    stage.model.on("Continue", (request) => {
      const remembers = /<workingFile name="NOW.md">[^<]*Next: Outline the post/.test(userText(request));
      return say(request, room, remembers ? "Outline: moon, sea, tides" : "What was I doing?", { final: true });
    });
    await stage.bridge.start();
    await said(room, "The research is done.");
    await stage.bridge.kill();
    await stage.bridge.start();
    await ann.say(room, "Continue");
    await said(room, "Outline: moon, sea, tides");
    await ann.say(room, `!cat rooms:/${room}/agents/helper/memory/LOG.md`);
    const { body } = await ann.waitForMessage(room, (message) => message.body.includes("TOOL_USE"));
    expect(body).toMatch(/TOOL_USE FS_WriteFile #\d+ .*research\.md.*: done/);
    expect(body).not.toContain("update_status");
  }, 120_000);

  it("what somebody has said is found in the compacted log 50 turns later (a minute)", async () => {
    const room = await stage.directRoom(ann);
    const logged = (content: string, type: string) => (request: ModelRequest) =>
      stepsIn(request) === 0
        ? call(request, "log_activity", { entry_type: type, content })
        : say(request, room, `noted ${newMessages(request).at(-1)?.body}`, { final: true });
    stage.model.on(
      ({ body }) => body.messages.at(-1)?.content.includes("Summarize the key events") === true,
      ({ body }) => `The user's API key is ${/key is (\d+)/.exec(body.messages.at(-1)?.content ?? "")?.[1] ?? "lost"}.`,
    );
    stage.model.on("My API key is 12345.", logged("The API key is 12345", "USER_FEEDBACK"));
    stage.model.on(/turn \d+/, logged(filler, "THOUGHT"));
    stage.model.on("What is my API key?", (request) => {
      // In so small a context a long result stands among the new events.
      const results = request.body.messages.findLast(({ role }) => role === "tool")?.content ?? userText(request);
      const found = /<result[^>]*>[^<]*SUMMARY: [^\n]*key is (\d+)/.exec(results)?.[1];
      if (found !== undefined) return say(request, room, `It is ${found}`, { final: true });
      return call(request, "FS_Read", { path: `rooms:/${room}/agents/helper/memory/LOG.md` });
    });
    await ann.say(room, "My API key is 12345.");
    await said(room, "noted My API key is 12345.");
    for (let turn = 1; turn <= turns; turn++) {
      await ann.say(room, `turn ${turn}`);
      await said(room, `noted turn ${turn}`);
    }
    await eventually(
      async () => {
        await ann.say(room, `!cat rooms:/${room}/agents/helper/memory/LOG.md`);
        return ann.waitForMessage(room, ({ body }) => body.includes("SUMMARY: The user's API key is 12345."), {
          within: 3_000,
        });
      },
      { what: "the log to be compacted", within: 20_000 },
    );
    await ann.say(room, "What is my API key?");
    await said(room, "It is 12345");
    await stage.bridge.kill();
    const archived = await stage.query<{ text: string }>(
      `select text from interactions where room_id = '${room}' and kind = 'summary'`,
    );
    expect(archived.map(({ text }) => text)).toEqual([expect.stringContaining("12345")]);
  }, 240_000);
});
