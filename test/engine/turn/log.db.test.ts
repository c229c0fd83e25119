import { expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { createLog, silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { ScriptedModel, say } from "../../support/scripted-model.ts";

type Line = Readonly<Record<string, unknown>>;

onEachDatabase((database) => {
  /** Lines logged at this level in a turn in which an agent thinks and answers. */
  const linesOf = async (level: string): Promise<Line[]> => {
    const [name, owner, person, roomId] = [newKey().replace(" ", "") as AgentName, newUser(), newUser(), newRoom()];
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person]) await setMember(database(), roomId, userId, "join");
    await wake(database(), { agent: name, roomId }, { requester: person });
    const model = await new ScriptedModel().start();
    model.onEvery((request) => [
      { reasoning: "a thought" },
      "a word",
      say(request, roomId, "an answer", { final: true }),
    ]);
    const lines: Line[] = [];
    const log = createLog(level, { write: (line) => void lines.push(JSON.parse(line)) });
    const rights = await rightsOf(database(), { test: "operate" });
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage], log });
    await new TurnRunner(mind, nobodyElse, () => {}).run({ agent: name, roomId });
    await model.stop();
    for (const line of lines) expect(line).toMatchObject({ agent: name, room: roomId, turn: 1 });
    return lines;
  };

  it("nothing is logged of a turn that has no trouble, unless it is asked for", async () => {
    expect(await linesOf("info")).toEqual([]);
  });

  it("debug tells of each turn, model call and function call, and nothing of what was said", async () => {
    const lines = await linesOf("debug");
    expect(lines.map(({ msg }) => msg)).toEqual([
      "a turn begins",
      "the model answered",
      "a call is done",
      "the turn is over",
    ]);
    expect(lines[0]).toMatchObject({ reason: "new event", requesters: [expect.stringMatching(/^@user/)] });
    expect(lines[1]).toMatchObject({ model: "m", promptTokens: 1000, calls: [expect.stringMatching(/^SendMessage_/)] });
    expect(lines[2]).toMatchObject({ function: expect.stringMatching(/^SendMessage_/) });
    expect(lines[3]).toMatchObject({ outcome: "done", milliseconds: expect.any(Number) });
    expect(JSON.stringify(lines)).not.toMatch(/a thought|a word|an answer/);
  });

  it("trace tells also what was thought, said, asked for and returned", async () => {
    const told = (await linesOf("trace")).filter(({ level }) => level === 10);
    expect(told).toEqual([
      expect.objectContaining({ thought: "a thought", text: "a word" }),
      expect.objectContaining({
        arguments: expect.stringContaining("an answer"),
        result: expect.stringMatching(/^<functionResult .*an answer/s),
      }),
    ]);
  });
});
