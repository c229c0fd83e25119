import { describe, expect, it } from "vitest";
import type { MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { introduce } from "../../../src/domain/agents/profile.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { keyInTurn } from "../../../src/engine/turn/state.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  describe("what a turn sends", () => {
    const claimed = async () => {
      const agent = await addAgent(database());
      const conversation = { agent: agent.name, roomId: newRoom() };
      await wake(database(), conversation);
      const turn = await new Turns(database(), "test").claim(conversation, 1);
      if (typeof turn === "string") throw new Error(turn);
      return { turn, agent: turn.record as never, conversation };
    };

    it("has another key than what a turn of the same number sent, before an older copy of the database went on", async () => {
      const { turn, agent } = await claimed();
      const other = (await claimed()).turn;
      for (const name of ["turn", "apology", "failed"])
        expect(keyInTurn(name, agent, { ...other, id: turn.id }, 1)).not.toBe(keyInTurn(name, agent, turn, 1));
    });

    it("has its key also for whoever takes the turn over", async () => {
      const { turn, agent, conversation } = await claimed();
      const again = await new Turns(database(), "another").claim(conversation, 1);
      if (typeof again === "string") throw new Error(again);
      expect(again.epoch).toBe(turn.epoch + 1);
      expect(keyInTurn("turn", agent, again, 1)).toBe(keyInTurn("turn", agent, turn, 1));
    });
  });

  it("a profile that an agent had before is told again", async () => {
    const { name } = await addAgent(database());
    const directory = new AgentDirectory(database(), systemClock, silentLog, { onChanged() {}, onRefused() {} });
    await directory.table.markRegistered(name);
    const told = async () =>
      (
        await database().sql<{ name: string }[]>`
          select content->>'displayName' as name from outbox where kind = 'profile' and sender = ${`@agent_${name}:test`} order by id`
      ).map((row) => row.name);
    const names = ["One", "Two", "One", "Two"];
    for (const displayName of names) {
      const agent = await directory.find(name);
      if (!agent) throw new Error("the agent is there");
      await introduce({ ...agent, displayName }, {} as MatrixClient, directory);
    }
    expect(await told()).toEqual(names);
  });
});
