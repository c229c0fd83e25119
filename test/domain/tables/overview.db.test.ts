import { expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { overviewOf } from "../../../src/domain/tables/overview.ts";
import { ScheduleTable } from "../../../src/domain/tables/schedules.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  it("an overview counts agents, turns at work, questions and schedules, and names the first of them", async () => {
    const before = await overviewOf(database());
    const [busy, asking, paused] = [await addAgent(database()), await addAgent(database()), await addAgent(database())];
    const turns = new Turns(database(), "a test");
    const start = async (agent: typeof busy) => {
      const where = { agent: agent.name, roomId: newRoom() };
      await wake(database(), where);
      const turn = await turns.claim(where, 4);
      if (typeof turn === "string") throw new Error(turn);
      return { where, turn };
    };
    const { where } = await start(busy);
    const { where: there, turn } = await start(asking);
    const { id, expiresAt } = await new Operations(database()).reserve(there);
    const question = { id, askedBecause: "why not", expiresAt, cardRoom: there.roomId, cardKey: newKey() };
    const operations = [{ ...call({ n: 0, tool: "FS_Delete" }), ...question, state: "asked" as const }];
    await turns.commit(turn, { n: 0, name: "call x", result: {}, operations, asks: true });
    await new Agents(database()).setPaused(paused.name, true);
    await new ScheduleTable(database()).add({
      key: newKey(),
      agent: busy.name,
      roomId: where.roomId,
      cron: null,
      timeZone: "UTC",
      text: "x",
      madeBy: newUser(),
      sources: [],
      taint: [],
      nextAt: new Date(systemClock.now().getTime() + 60_000),
    });

    const now = await overviewOf(database());
    expect(now.agents - before.agents).toBe(3);
    expect(now.paused).toContain(paused.name);
    expect(now.turns - before.turns).toBe(1);
    expect(now.atWork).toContainEqual({
      ...where,
      roomName: null,
      reason: "new event",
      seconds: expect.any(Number) as number,
    });
    expect(now.questions - before.questions).toBe(1);
    const waiting = now.waiting.find((one) => one.id === id);
    expect(waiting).toMatchObject({ agent: asking.name, tool: "FS_Delete" });
    expect(waiting?.secondsLeft).toBeGreaterThan(80_000);
    expect(now.schedules - before.schedules).toBe(1);
    expect(now.nextInSeconds).toBeLessThanOrEqual(60);
    expect(now.backlog).toMatchObject({ events: before.backlog.events });
  });
});
