import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chainBudget } from "../../src/domain/tables/effects.ts";
import { eventually } from "../support/poll.ts";
import { agentOf, answer, newsOf, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("agents among themselves, on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database, agents: { alpha: {}, beta: {} } });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  const alpha = () => stage.agentId("alpha");
  const beta = () => stage.agentId("beta");
  const saidByAgents = async (room: string) =>
    (await ann.messages(room)).filter(({ sender, content }) => sender !== ann.id && content.msgtype === "m.text");

  it("an agent hears an agent that mentions it, and answers", async () => {
    const room = await stage.room(ann, [], ["alpha", "beta"]);
    stage.model.on("ask your colleague", (request) => answer(request, `${beta()}: which day is it?`));
    stage.model.on("which day", (request) => answer(request, "Monday, I think"));
    await ann.mention(room, alpha(), "ask your colleague which day it is");
    const { sender } = await ann.waitForMessage(room, ({ body }) => body === "Monday, I think");
    expect(sender).toBe(beta());
  });

  it("an agent that says something to nobody wakes no other agent", async () => {
    const room = await stage.room(ann, [], ["alpha", "beta"]);
    stage.model.on("murmur", (request) => answer(request, "hm, hm"));
    await ann.mention(room, alpha(), "murmur something");
    await ann.waitForMessage(room, ({ body }) => body === "hm, hm");
    await routed(room);
    expect(requestsIn(room).map(agentOf)).toEqual([alpha()]);
  });

  it("a notice wakes nobody, even if it mentions the agent", async () => {
    const room = await stage.room(ann, [], ["alpha", "beta"]);
    await ann.mention(room, alpha(), "backup finished", { msgtype: "m.notice" });
    await routed(room);
    stage.model.on("hi there", (request) => answer(request, "hi"));
    await ann.mention(room, alpha(), "hi there");
    await ann.waitForMessage(room, ({ body }) => body === "hi");
    expect(requestsIn(room).map((request) => newsOf(request, room))).toEqual([["hi there"]]);
  });

  describe("two that greet each other for ever", () => {
    let room: string;
    beforeAll(async () => {
      room = await stage.room(ann, [], ["alpha", "beta"]);
      const other = (agent: string) => (agent === alpha() ? beta() : alpha());
      stage.model.on("greetings", (request) => answer(request, `${other(agentOf(request))} greetings!`));
    });

    it("stop after the chain's budget", async () => {
      await ann.mention(room, alpha(), "greetings to you both");
      await eventually(async () => (await saidByAgents(room)).length === chainBudget + 1, { what: "the budget's end" });
      await routed(room);
      expect(await saidByAgents(room)).toHaveLength(chainBudget + 1);
    });

    it("go on when a person speaks, for as long again", async () => {
      await ann.mention(room, beta(), "more greetings");
      const twice = 2 * (chainBudget + 1);
      await eventually(async () => (await saidByAgents(room)).length === twice, { what: "the second budget's end" });
      await routed(room);
      await stage.check();
      expect(await saidByAgents(room)).toHaveLength(twice);
    });
  });

  const requestsIn = (room: string) => stage.model.requests.filter((request) => roomOf(request) === room);

  /** A command is answered by the router itself: what came before it in the room has been routed. */
  async function routed(room: string): Promise<void> {
    const id = await ann.say(room, "!help");
    await ann.waitForMessage(room, ({ content }) => content["org.clevernet.command"] === id);
  }
});
