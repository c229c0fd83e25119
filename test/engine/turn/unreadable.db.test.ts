import { afterEach, beforeEach, expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { tool as tellAgent } from "../../../src/edges/tools/tell-agent.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { ScriptedModel, type Step, say, userText } from "../../support/scripted-model.ts";

onEachDatabase((database) => {
  let model: ScriptedModel;
  let agent: Agent;
  let person: UserId;
  let here: RoomId;
  let elsewhere: RoomId;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    [person, here, elsewhere] = [newUser(), newRoom(), newRoom()];
    const name = newKey().replace(" ", "") as AgentName;
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner: person, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
    agent = (await directory.find(name)) as Agent;
    for (const roomId of [here, elsewhere])
      for (const userId of [person, agent.userId]) await setMember(database(), roomId, userId, "join");
  });
  afterEach(() => model.stop());

  /** A turn for a message in the room, in a process of its own; returns how it ended. */
  const turnIn = async (roomId: RoomId, body: string, note?: string) => {
    const rights = await rightsOf(database(), { test: "operate" });
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage, tellAgent] });
    await wake(
      database(),
      { agent: agent.name, roomId },
      { requester: person, ...(note !== undefined && { note }) },
      body,
    );
    await new TurnRunner(mind, nobodyElse, () => {}).run({ agent: agent.name, roomId });
    const [row] = await database().sql<{ state: string; error: string | null }[]>`
      select state, error from turns where agent = ${agent.name} order by id desc limit 1`;
    return [row?.state, row?.error];
  };
  const answerEach = () =>
    model.onEvery((request) =>
      say(request, userText(request).includes("in here") ? here : elsewhere, "well", { final: true }),
    );

  it.each<[string, Step[] | ((request: Parameters<typeof say>[0]) => Step)]>([
    ["text that takes more than a million characters once it is escaped", ["<".repeat(260_000)]],
    ["thought that does", [{ reasoning: "<".repeat(990_000) }, "done"]],
    ["message that does", (request) => say(request, here, "<".repeat(260_000), { final: true })],
    ["call of a function with a name that does", [{ call: "<".repeat(260_000), arguments: {} }, "done"]],
  ])("an agent goes on after a %s, there and elsewhere", async (_, long) => {
    model.on(() => true, long, { times: 1 });
    answerEach();
    expect(await turnIn(here, "in here: be long")).toEqual(["done", null]);
    expect(await turnIn(here, "in here: go on")).toEqual(["done", null]);
    expect(await turnIn(elsewhere, "go on")).toEqual(["done", null]);
    const [kept] = await database().sql<{ longest: number }[]>`
      select max(length(entry)) as longest from ephemeris where user_id = ${agent.userId}`;
    expect(kept?.longest).toBeLessThanOrEqual(200_000);
  });

  it.each([
    ["too long", `<thought timestamp="2026-01-01T00:00:00Z">${"y".repeat(1_100_000)}</thought>`],
    ["no LMML", "<thought>"],
  ])("a row that is %s is shown as a stub, and ends no turn", async (_, row) => {
    const [{ id } = { id: 0 }] = await database().sql<{ id: number }[]>`
      insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
      values (${agent.userId}, ${here}, ${-Number(newKey().slice(4))}, 1, 1, ${row}, ${[here]}) returning id`;
    expect(id).toBeGreaterThan(0);
    await database().sql`
      insert into windows (agent, room_id, src_type, src, content_type, content, height, turns_left)
      values (${agent.name}, ${here}, 'search', 'rooms:/', 'text/lmml', ${row}, 20, 9)`;
    answerEach();
    expect(await turnIn(here, "in here", row)).toEqual(["done", null]);
    const shown = userText(model.requests[0] as Parameters<typeof userText>[0]);
    expect(shown.match(/cannot be read any more/g)).toHaveLength(3);
  });
});
