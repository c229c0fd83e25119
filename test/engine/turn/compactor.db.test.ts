import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { type AgentName, type Conversation, HOME, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { formatPath } from "../../../src/domain/files/path.ts";
import { workingFile } from "../../../src/domain/files/working-files.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import type { Turn } from "../../../src/domain/tables/turns.ts";
import { tool as logActivity } from "../../../src/edges/tools/log-activity.ts";
import { toolContext } from "../../../src/engine/operations/tool-context.ts";
import { activityBytesMax } from "../../../src/engine/turn/compactor.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { type MindOptions, mindOf } from "../../support/mind.ts";
import { mortal } from "../../support/mortal-database.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say } from "../../support/scripted-model.ts";

const entry = "[2026-01-01 00:00:00] THOUGHT: the API key of the weather service is 12345\n";
const long = entry.repeat(Math.ceil(activityBytesMax / entry.length) + 1);

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let conversation: Conversation;
  let agent: Agent;
  let person: UserId;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    rights = await rightsOf(database(), { test: "operate" });
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
    const found = await directory.find(name);
    if (!found) throw new Error("no agent");
    agent = found;
    conversation = { agent: name, roomId: newRoom() };
    for (const userId of [person, agent.userId]) await setMember(database(), conversation.roomId, userId, "join");
  });
  afterEach(() => model.stop());

  const reads = ({ body }: ModelRequest) => body.model === "fast";
  const compactorOf = (own: Database, options: Partial<MindOptions> = {}) =>
    mindOf(own, { modelUrl: model.url, rights, tools: [], ...options }).compactor;
  const turn = () => ({ ...conversation, requesters: [person] }) as unknown as Turn;
  const path = () => formatPath(workingFile(conversation, "LOG.md"));
  const files = (fields: Parameters<typeof actorOf>[2] = {}) =>
    new FileSystem(
      shares(database()),
      actorOf(agent, conversation.roomId, { by: "person", requesters: [person], ...fields }),
      newKey(),
    );
  const text = async () => (await files().read(path())).text ?? "";
  const summaries = async () => [
    ...(await database().sql<{ text: string; sources: string[]; taint: string[] }[]>`
      select text, sources, taint from interactions where agent = ${agent.name} and kind = 'summary' order by id`),
  ];
  const answer = "The key of the weather service is 12345.";
  const compact = async (compactor = compactorOf(database()), bytes = long.length) => {
    compactor.consider(agent, turn(), bytes);
    await compactor.idle();
  };

  it("a log that is too long is summarised, archived, and begins with the summary", async () => {
    await files().write(path(), long);
    model.on(reads, answer);
    await compact();
    expect(await text()).toMatch(/^\[[-\d: ]{19}\] SUMMARY: The key of the weather service is 12345\.\n$/);
    expect(await summaries()).toEqual([
      { text: expect.stringContaining(answer), sources: [conversation.roomId], taint: [] },
    ]);
    const [{ messages } = { messages: [] }] = model.requests.map(({ body }) => body);
    expect(messages[1]?.content).toContain("the API key of the weather service");
    expect((await files().stat(path())).versions).toHaveLength(1);
  });

  it("a log that was compacted after its bytes were counted stays as it is", async () => {
    await files().write(path(), long);
    model.on(reads, answer);
    const compactor = compactorOf(database());
    await compact(compactor);
    const compacted = await text();
    await compact(compactor, long.length);
    expect(await text()).toBe(compacted);
    expect(await summaries()).toHaveLength(1);
  });

  it("of a tainted log the summary is tainted, and the log stays so", async () => {
    await files({ isTainted: true }).write(path(), long);
    model.on(reads, answer);
    await compact();
    expect((await summaries()).map(({ taint }) => taint)).toEqual([[path()]]);
    expect(await files().info(path())).toMatchObject({ isTainted: true });
  });

  it("the summary is behind the walls of all from which the log was written, and so is the log", async () => {
    const elsewhere = newRoom();
    for (const userId of [person, agent.userId]) await setMember(database(), elsewhere, userId, "join");
    await files({ by: "model", sources: [conversation.roomId, elsewhere] }).write(path(), long);
    model.on(reads, answer);
    await compact();
    expect((await summaries()).map(({ sources }) => sources.toSorted())).toEqual([
      [conversation.roomId, elsewhere].toSorted(),
    ]);
    expect(await files().info(path())).toMatchObject({ sources: [elsewhere] });
    const newcomer = newUser();
    await setMember(database(), conversation.roomId, newcomer, "join");
    await expect(files({ requesters: [newcomer] }).read(path())).rejects.toThrow("may not read it");
    await expect(files({ requesters: [newcomer] }).restore(path())).rejects.toThrow("may not write there");
  });

  it("an entry that makes the log too long has it compacted at once", async () => {
    await files().write(path(), long);
    model.on(reads, answer);
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [] });
    const origin = {
      agent,
      roomId: conversation.roomId,
      thread: undefined,
      key: newKey(),
      chain: "",
      by: "person" as const,
      requesters: [person],
      sources: [conversation.roomId],
      taint: [],
      signal: new AbortController().signal,
    };
    await logActivity.run({ entry_type: "THOUGHT", content: "one more" }, await toolContext(mind, origin), "create");
    await mind.compactor.idle();
    expect(await text()).toMatch(/^\S+ \S+ SUMMARY: [^\n]+\n$/);
  });

  it("entries that come meanwhile stay, behind the summary", async () => {
    await files().write(path(), long);
    model.on(reads, async () => {
      await files().append(path(), "[2026-01-01 00:00:01] THOUGHT: meanwhile\n");
      return answer;
    });
    await compact();
    expect(await text()).toMatch(/^\S+ \S+ SUMMARY: [^\n]+\n\[2026-01-01 00:00:01\] THOUGHT: meanwhile\n$/);
  });

  it("a log that people change meanwhile stays as they have left it, and is tried again later", async () => {
    await files().write(path(), long);
    model.on(reads, async () => {
      await files().edit(path(), (old) => old.replace("12345", "54321"));
      return answer;
    });
    const compactor = compactorOf(database());
    await compact(compactor);
    expect(await text()).toBe(long.replace("12345", "54321"));
    expect(await summaries()).toEqual([]);
    await compact(compactor);
    expect(model.requests).toHaveLength(1);
  });

  it("a process that dies at any statement leaves all old or all new", async () => {
    model.onEvery(answer);
    const seen = new Set<string>();
    for (let at = 1; ; at++) {
      await database().sql`delete from interactions where agent = ${agent.name}`;
      await files().write(path(), long);
      const { database: own, died } = mortal(database(), at);
      const ended = await Promise.race([died, compact(compactorOf(own))]);
      const [now, archived] = [await text(), await summaries()];
      const isNew = now.includes("SUMMARY");
      expect(archived).toHaveLength(isNew ? 1 : 0);
      if (!isNew) expect(now).toBe(long);
      seen.add(isNew ? "new" : "old");
      if (ended === undefined) break;
    }
    expect([...seen].sort()).toEqual(["new", "old"]);
  });

  it("nothing is lost where the model says nothing, or fails, or the budget is used up", async () => {
    await files().write(path(), long);
    model.on(reads, "", { times: 1 });
    await compact();
    model.on(reads, { status: 400 }, { times: 1 });
    await compact();
    await compact(compactorOf(database(), { budgets: { bridge: { tokens: 1 } } }));
    expect(await text()).toBe(long);
    expect(await summaries()).toEqual([]);
    expect(model.requests).toHaveLength(2);
  });

  it("a short log is left alone", async () => {
    await files().write(path(), entry);
    await compact(undefined, activityBytesMax);
    expect(model.requests).toEqual([]);
  });

  it("two processes that compact the same log write one summary", async () => {
    await files().write(path(), long);
    model.onEvery(answer);
    await Promise.all([compact(), compact()]);
    expect(await summaries()).toHaveLength(1);
    expect((await text()).split("SUMMARY")).toHaveLength(2);
  });

  it("at home it is the agent's own log", async () => {
    conversation = { ...conversation, roomId: HOME };
    person = agent.owner;
    await files().write(path(), long);
    model.on(reads, answer);
    await compact();
    expect(await text()).toContain("SUMMARY");
    expect((await summaries()).map(({ sources }) => sources)).toEqual([[HOME]]);
  });

  it("a turn that sees such a log has it compacted, and answers meanwhile", async () => {
    await files().write(path(), long);
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [] });
    model.on(reads, answer).onEvery((request) => say(request, conversation.roomId, "done"));
    await wake(database(), conversation, { requester: person });
    const claimed = await mind.turns.claim(conversation, 1);
    if (typeof claimed === "string") throw new Error(claimed);
    const { activityBytes } = await mind.view.see(agent, claimed, {
      wakes: claimed.wakes ?? [],
      entries: [],
      reminders: [],
      base: undefined,
      known: new Set(),
    });
    mind.compactor.consider(agent, claimed, activityBytes);
    await mind.compactor.idle();
    expect(await text()).toContain("SUMMARY");
  });
});
