import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Level } from "../../../src/domain/rights/permissions.ts";
import { schedulesMax } from "../../../src/domain/tables/schedules.ts";
import { tool as schedule } from "../../../src/edges/tools/schedule.ts";
import { tool as list } from "../../../src/edges/tools/schedule-list.ts";
import { tool as remove } from "../../../src/edges/tools/schedule-remove.ts";
import { tool as tell } from "../../../src/edges/tools/tell-agent.ts";
import type { Origin } from "../../../src/engine/operations/origin.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";
import { toolContext } from "../../../src/engine/operations/tool-context.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** An agent in Berlin and a person, in a room; what the tools say there. */
  async function newScene(levels: Readonly<Record<UserId, Level>> = {}) {
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const [owner, ann, roomId] = [newUser(), newUser(), newRoom()];
    const settings = parseAgentSettings({ timeZone: "Europe/Berlin" }, "test");
    const newAgent = async () => {
      const name = newKey().replace(" ", "") as AgentName;
      await directory.seed({ name, owner, persona: undefined, settings }, "test");
      const agent = await directory.find(name);
      if (!agent) throw new Error("it was not added");
      return agent;
    };
    const agent = await newAgent();
    for (const userId of [agent.userId, ann]) await setMember(database(), roomId, userId, "join");
    const mind = mindOf(database(), {
      modelUrl: "http://127.0.0.1:9",
      rights: await rightsOf(database(), { [ann]: "operate", ...levels }),
      tools: [],
    });
    const call = async (tool: AnyTool, input: Record<string, unknown>, given: Partial<Origin> = {}) => {
      const origin: Origin = {
        agent,
        roomId,
        thread: undefined,
        key: newKey(),
        chain: "$event",
        by: "model",
        requesters: [ann],
        sources: [roomId],
        taint: [],
        signal: new AbortController().signal,
        ...given,
      };
      return tool.run(input, await toolContext(mind, origin), "create");
    };
    const text = async (...args: Parameters<typeof call>) => {
      const { result } = await call(...args);
      return typeof result === "string" ? result : render(result);
    };
    return { agent, ann, call, directory, newAgent, text };
  }
  const inMs = (ms: number) => new Date(systemClock.now().getTime() + ms).toISOString();

  describe("Schedule", () => {
    it("means the clocks of the agent's zone", async () => {
      const { text } = await newScene();
      const made = await text(schedule, { at: "2100-07-01T09:00", text: "up" });
      expect(made).toContain('next="2100-07-01 09:00:00 +0200"');
      expect(await text(schedule, { cron: "0 9 1 1 *", text: "new" })).toMatch(/next="\d{4}-01-01 09:00:00 \+0100"/);
    });

    it("takes the time from the beginning of the text where it is nowhere else", async () => {
      const { text } = await newScene();
      expect(await text(schedule, { text: "0 9 * * 1-5 Good morning" })).toMatch(
        /cron="0 9 \* \* 1-5".*>Good morning</,
      );
      await expect(text(schedule, { text: "Good morning" })).rejects.toThrow(
        "Say when: cron, such as 0 9 * * 1-5, or at,",
      );
      await expect(text(schedule, { text: "61 * * * * Good morning" })).rejects.toThrow("cron: the minute 61 is not");
      await expect(text(schedule, { text: "0 9 * * 1-5" })).rejects.toThrow("no text stands behind the time");
      const both = { text: "a", cron: "* * * * *", at: "2100-01-01" };
      await expect(text(schedule, both)).rejects.toThrow("Say when: cron, such as 0 9 * * 1-5, or at,");
    });

    it("makes one for one call, also where its time is over when it is run again", async () => {
      const { text } = await newScene();
      const key = newKey();
      const made = await text(schedule, { at: inMs(60_000), text: "a" }, { key });
      expect(await text(schedule, { at: inMs(-60_000), text: "a" }, { key })).toBe(made);
    });

    it("is in the name of the one who may do the least", async () => {
      const bob = newUser();
      const { ann, text } = await newScene({ [bob]: "use" });
      expect(await text(schedule, { text: "* * * * * a" }, { requesters: [ann, bob] })).toContain(`madeBy="${bob}"`);
    });

    it("does not go on by itself more often than once a minute", async () => {
      const { text } = await newScene();
      const rung = { chain: "schedule:1:2026-01-01T12:00:00.000Z" };
      await expect(text(schedule, { at: inMs(30_000), text: "a" }, rung)).rejects.toThrow("a minute later");
      expect(await text(schedule, { at: inMs(90_000), text: "a" }, rung)).toContain(">a</schedule>");
      expect(await text(schedule, { at: inMs(30_000), text: "a" }, { ...rung, by: "person" })).toContain(">a<");
    });

    it("says when the agent has as many as it may", async () => {
      const { text } = await newScene();
      for (let i = 0; i < schedulesMax; i++) await text(schedule, { text: "0 0 1 1 * a" });
      await expect(text(schedule, { text: "0 0 1 1 * a" })).rejects.toThrow(`${schedulesMax} schedules already`);
    });
  });

  it("what others made is removed by those who may operate alone", async () => {
    const [bob, eve] = [newUser(), newUser()];
    const { call, text } = await newScene({ [bob]: "operate", [eve]: "chat" });
    const id = Number(/id="(\d+)"/.exec(await text(schedule, { text: "0 9 * * * a" }))?.[1]);
    await expect(call(remove, { id }, { requesters: [eve] })).rejects.toThrow("those who have the right to operate");
    expect(await text(remove, { id }, { requesters: [bob] })).toBe(`Schedule ${id} is removed.`);
    await expect(call(remove, { id })).rejects.toThrow(`There is no schedule ${id} here.`);
    expect(await text(list, {})).toBe("Nothing is scheduled here.");
  });

  it("a list is tainted as what it lists was", async () => {
    const { call } = await newScene();
    await call(schedule, { text: "0 9 * * * a" }, { taint: ["@eve:test"] });
    expect(await call(list, {})).toMatchObject({ taint: ["@eve:test"] });
  });

  describe("TellAgent", () => {
    it("wakes the other at home, for the one who may do the least, tainted by who tells it", async () => {
      const bob = newUser();
      const { agent, ann, call, newAgent } = await newScene({ [bob]: "use" });
      const other = await newAgent();
      const origin = { key: newKey(), requesters: [ann, bob], taint: ["@eve:test", other.userId] };
      const { wakes } = await call(tell, { agent: other.userId, text: "hi <there>" }, origin);
      expect(wakes).toEqual([
        {
          agent: other.name,
          roomId: "",
          reason: "mailbox",
          key: origin.key,
          requester: bob,
          chain: "$event",
          note: expect.stringMatching(
            new RegExp(`^<message .*sender="${agent.userId}" onBehalfOf="${bob}" .*>hi &lt;there></message>$`),
          ),
          taint: ["@eve:test", agent.userId],
        },
      ]);
    });

    it("says whom it cannot tell anything", async () => {
      const { agent, call, directory, newAgent } = await newScene();
      const other = await newAgent();
      await directory.table.setPaused(other.name, true);
      const to = (name: string) => call(tell, { agent: name, text: "hi" });
      await expect(to(other.name)).rejects.toThrow(`${other.name} is paused`);
      await expect(to(agent.name)).rejects.toThrow("you cannot tell yourself anything");
      await expect(to("nobody-at-all")).rejects.toThrow("There is no agent nobody-at-all.");
      await directory.table.remove(other.name);
      await expect(to(other.name)).rejects.toThrow(`There is no agent ${other.name}.`);
    });
  });
});
