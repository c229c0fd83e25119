import { afterEach, beforeEach, expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, EventId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { redactEvent } from "../../../src/domain/tables/redact-event.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import type { Mind } from "../../../src/engine/turn/mind.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say, userText } from "../../support/scripted-model.ts";

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let conversation: Conversation;
  let person: UserId;
  let mind: Mind;
  let first: EventId;
  const begin = async (settings: object = {}) => {
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const fields = parseAgentSettings({ approxContextCharsMax: 12_000, ...settings }, "test");
    await directory.seed({ name, owner, persona: undefined, settings: fields }, "test");
    conversation = { agent: name, roomId: newRoom() };
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person])
      await setMember(database(), conversation.roomId, userId, "join");
    mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage] });
  };
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    rights = await rightsOf(database(), { test: "operate" });
    model
      .on(reads, "Ann wants 12 chairs by Friday.")
      .onEvery((request) => say(request, conversation.roomId, "noted", { final: true }));
    await begin();
  });
  afterEach(() => model.stop());

  const reads = ({ body }: ModelRequest) => body.model === "fast";
  const ask = async (words: string) => {
    const { eventId } = await wake(database(), conversation, { requester: person }, words);
    await new TurnRunner(mind, nobodyElse, () => {}).run(conversation);
    await mind.summaries.idle();
    return eventId;
  };
  const isCut = (request: ModelRequest) => !reads(request) && userText(request).includes("<log truncated>");
  /** Talks until the log is cut. */
  const talk = async () => {
    first = await ask("I want 12 chairs by Friday.");
    for (let turn = 0; turn < 40 && !model.requests.some(isCut); turn++)
      await ask(`${turn} ${"and so on ".repeat(50)}`);
  };
  const shown = async () => {
    await ask("What did I want?");
    return userText(model.requests.at(-1) as ModelRequest);
  };
  const summary = "<summary>Ann wants 12 chairs by Friday.</summary>";

  it("what leaves the log is summarised, and the summary stands at its beginning", async () => {
    await talk();
    const [request] = model.requests.filter(reads);
    expect(request && userText(request)).toContain("I want 12 chairs by Friday.");
    const text = await shown();
    expect(text).toContain(summary);
    expect(text).not.toContain("I want 12 chairs");
    const rows = await database().sql`
      select text, sources from interactions where agent = ${conversation.agent} and kind = 'summary'`;
    expect([...rows]).toEqual([{ text: expect.stringContaining("12 chairs"), sources: [conversation.roomId] }]);
  });

  it("the next summary is made from the former and what leaves then", async () => {
    await talk();
    for (let turn = 0; turn < 40 && model.requests.filter(reads).length < 2; turn++)
      await ask(`${turn} ${"more of it ".repeat(50)}`);
    const second = model.requests.filter(reads)[1];
    expect(second && userText(second)).toContain("Former summary: Ann wants 12 chairs by Friday.");
    expect(await shown()).toContain(summary);
  });

  it("a log that has to be cut before the summary is there is cut without it, and the summary is dropped", async () => {
    const answered = Promise.withResolvers<void>();
    model.on(
      reads,
      async () => {
        await answered.promise;
        return "too late";
      },
      { times: 1 },
    );
    const { summaries } = mind;
    mind = {
      ...mind,
      summaries: Object.assign(Object.create(summaries), { idle: async () => {} }) as typeof summaries,
    };
    await talk();
    expect(userText(model.requests.findLast(isCut) as ModelRequest)).not.toContain("<summary");
    answered.resolve();
    await summaries.idle();
    expect(await shown()).not.toContain("<summary");
  });

  it("the beginning of the prompt stays the same from then on", async () => {
    await talk();
    const before = await shown();
    const after = await shown();
    const log = before.slice(0, before.indexOf("</log>"));
    expect(after.startsWith(log)).toBe(true);
  });

  it("a redaction of something that it may have been made from drops it", async () => {
    await talk();
    await redactEvent(database(), first, []);
    expect(await shown()).not.toContain("<summary");
  });

  it("is not shown to somebody who may not read what it was made from", async () => {
    await talk();
    await database().sql`
      update conversations set log = jsonb_set(log, '{summary,sources}', ${database().sql.json([newRoom()])})
      where agent = ${conversation.agent}`;
    expect(await shown()).not.toContain("<summary");
  });

  it("of untrusted people's words is marked, and taints the turn", async () => {
    rights = await rightsOf(database(), { test: "chat" });
    await begin();
    await talk();
    expect(await shown()).toContain("<summary tainted>");
  });

  it("is not made for an agent without the set memory", async () => {
    await begin({ tools: ["core"] });
    await talk();
    expect(model.requests.filter(reads)).toEqual([]);
    expect(await shown()).toContain("<log truncated>");
  });
});
