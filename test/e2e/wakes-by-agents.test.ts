import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chainBudget } from "../../src/domain/tables/effects.ts";
import { all, textOf } from "../support/elements.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, say, toolName } from "../support/scripted-model.ts";
import { agentOf, answer, callsOf, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("what agents wake for by themselves", () => {
  let stage: Stage;
  let admin: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "embedded", agents: { alpha: {}, beta: {} } });
    await stage.bridge.start();
    admin = await stage.user("admin");
    room = await stage.directRoom(admin, "alpha");
  });
  afterAll(() => stage.strike());

  /** Events that the running turn was shown, beside its own thoughts and calls. */
  const notesOf = (request: ModelRequest) =>
    [...all(roomSeen(request, "ephemeris"), "newEvents")].flatMap((events) =>
      ["systemEvent", "message"].flatMap((name) => all(events, name)),
    );
  const reasonOf = (request: ModelRequest) =>
    all(roomSeen(request, "ephemeris"), "newEvents").flatMap((events) => all(events, "timestamp"))[0]?.attributes
      .wakeReason;
  const isTold = (text: string) => (request: ModelRequest) =>
    notesOf(request).some((note) => textOf(note) === text) && callsOf(request).length === 0;
  const soon = (ms: number) => new Date(Date.now() + ms).toISOString();
  const said = (words: string) => admin.waitForMessage(room, ({ body }) => body.includes(words));

  const nothing = async () =>
    (await admin.messages(room)).filter(({ content }) => content.body === "Nothing is scheduled here.");

  it("an agent computes what must be exact, and people may as well", async () => {
    stage.model.on("how many Rs", (request) => {
      const [call] = callsOf(request);
      if (call) return answer(request, `There are ${call.result}.`);
      const javascript = '[..."Strawberry"].filter((c) => /r/i.test(c)).length';
      return { call: toolName(request, "compute"), arguments: { javascript } };
    });
    await admin.say(room, "how many Rs are in Strawberry?");
    await said("There are 3.");
    await admin.say(room, "!compute 2n ** 64n");
    await said("18446744073709551616");
    await admin.say(room, "!compute 1 +\n+ two");
    await said("ReferenceError: two is not defined (line 2, column 3)");
  });

  describe("a schedule", () => {
    it("that a person makes wakes the agent in the room, with the text and for that person", async () => {
      stage.model.on(isTold("water the plants"), (request) => answer(request, "Time to water the plants!"));
      await admin.say(room, `!schedule ${soon(1_500)} water the plants`);
      await said("Time to water the plants!");
      const request = await stage.model.request(isTold("water the plants"));
      expect([agentOf(request), roomOf(request), reasonOf(request)]).toEqual([
        stage.agentId("alpha"),
        room,
        "schedule",
      ]);
      expect(notesOf(request)[0]).toMatchObject({ name: "systemEvent", attributes: { madeBy: admin.id } });
    });

    it("that the agent makes wakes it as well, and stands in its record later", async () => {
      stage.model.on("remind me of tea", (request) => {
        const [made] = callsOf(request);
        if (made) return say(request, room, "I will", { final: true });
        return { call: toolName(request, "Schedule"), arguments: { at: soon(3_000), text: "tea is ready" } };
      });
      stage.model.on(isTold("tea is ready"), (request) => answer(request, "Your tea!"));
      await admin.say(room, "remind me of tea");
      await said("Your tea!");
      stage.model.on("what was it about", (request) => answer(request, "It was about tea"));
      await admin.say(room, "what was it about");
      await said("It was about tea");
      const request = await stage.model.request("what was it about");
      expect(JSON.stringify(request.body.messages)).toContain("tea is ready</systemEvent>");
    });

    it("is listed and removed by command, and mistakes are explained", async () => {
      await admin.say(room, "!schedule 0 9 * * 1-5 Good morning");
      const { body } = await said("Good morning</schedule>");
      expect(body).toMatch(/cron="0 9 \* \* 1-5" timeZone="UTC" madeBy="@admin:/);
      const id = /<schedule id="(\d+)"/.exec(body)?.[1];
      await admin.say(room, "!schedule list");
      await said("<schedules>");
      await admin.say(room, `!schedule remove ${id}`);
      await said(`Schedule ${id} is removed.`);
      await admin.say(room, "!schedule list");
      await said("Nothing is scheduled here.");
      await admin.say(room, "!schedule tomorrow wake up");
      await said("Say when: cron, such as 0 9 * * 1-5, or at,");
      await admin.say(room, "!schedule --cron 61 wake up");
      await said("it has no five fields, but 1");
    });

    it("rings once, late, for what was due while the bridge was down", async () => {
      stage.model.on(isTold("while you slept"), (request) => answer(request, "I slept"));
      await admin.say(room, `!schedule ${soon(2_000)} while you slept`);
      await said("while you slept</schedule>");
      await stage.bridge.kill();
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      await stage.bridge.start();
      await said("I slept");
      await admin.say(room, "!schedule list");
      await eventually(async () => (await nothing()).length === 2, { what: "nothing to be scheduled" });
      expect(stage.model.requests.filter(isTold("while you slept"))).toHaveLength(1);
    });
  });

  describe("an agent that another tells something", () => {
    it("wakes at home, for the person who asked, and answers in the same way", async () => {
      const tell = (request: ModelRequest, agent: string, text: string) =>
        ({ call: toolName(request, "TellAgent"), arguments: { agent, text } }) as const;
      stage.model.on("ask beta for the figures", (request) =>
        callsOf(request).length > 0
          ? say(request, room, "I have asked", { final: true })
          : tell(request, "beta", "The figures?"),
      );
      stage.model.on(isTold("The figures?"), (request) => tell(request, "alpha", "The figures: 1, 2, 3"));
      stage.model.on((request) => callsOf(request).length > 0 && roomOf(request) === "", "done");
      stage.model.on(isTold("The figures: 1, 2, 3"), "I have them.");
      await admin.say(room, "ask beta for the figures");
      await said("I have asked");
      const asked = await stage.model.request(isTold("The figures?"));
      expect([agentOf(asked), roomOf(asked), reasonOf(asked)]).toEqual([stage.agentId("beta"), "", "mailbox"]);
      expect(notesOf(asked)[0]?.attributes).toMatchObject({
        roomId: "mailbox",
        sender: stage.agentId("alpha"),
        onBehalfOf: admin.id,
      });
      const answered = await stage.model.request(isTold("The figures: 1, 2, 3"));
      expect([agentOf(answered), roomOf(answered)]).toEqual([stage.agentId("alpha"), ""]);
    });

    it("two that tell each other everything end with the chain's budget, and are told why", async () => {
      stage.model.on("start the gossip", (request) =>
        callsOf(request).length > 0
          ? say(request, room, "It is out", { final: true })
          : { call: toolName(request, "TellAgent"), arguments: { agent: "beta", text: "gossip" } },
      );
      const other = (request: ModelRequest) => (agentOf(request) === stage.agentId("alpha") ? "beta" : "alpha");
      stage.model.on(isTold("gossip"), (request) => ({
        call: toolName(request, "TellAgent"),
        arguments: { agent: other(request), text: "gossip" },
      }));
      await admin.say(room, "start the gossip");
      await said("It is out");
      const last = await stage.model.request((request) =>
        JSON.stringify(request.body.messages).includes("Only a person can go on from here"),
      );
      expect(roomOf(last)).toBe("");
      expect(stage.model.requests.filter(isTold("gossip"))).toHaveLength(chainBudget);
    });

    it("is tainted by what it was told", async () => {
      stage.model.on(isTold("set your timer"), (request) => ({
        call: toolName(request, "SetAgentParameters"),
        arguments: { wakeUpTimerSeconds: 60 },
      }));
      await admin.say(room, "!tell beta set your timer");
      const next = await stage.model.request((request) => callsOf(request)[0]?.name.startsWith("SetAgent") ?? false);
      expect(callsOf(next)[0]?.result).toContain(`untrusted text was read before: ${stage.agentId("alpha")}`);
    });

    it("a person's command tells it as well; whom it cannot tell is explained", async () => {
      stage.model.on(isTold("hello from a command"), "I hear.");
      await admin.say(room, "!tell beta hello from a command");
      await said("beta is told");
      await stage.model.request(isTold("hello from a command"));
      await admin.say(room, "!tell beeta hello");
      await said("There is no agent beeta. Did you mean beta?");
      await admin.say(room, "!tell alpha hello");
      await said("you cannot tell yourself anything");
    });
  });
});
