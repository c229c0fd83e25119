import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { tool as listTodos } from "../../../src/edges/tools/todos-list.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, newMessages, ScriptedModel, say, toolName } from "../../support/scripted-model.ts";

onEachDatabase((database) => {
  let model: ScriptedModel;
  let person: UserId;
  let conversation: Conversation;
  let run: () => Promise<unknown>;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
  });
  afterEach(() => model.stop());

  const begin = async (settings: object) => {
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const parsed = parseAgentSettings({ approxContextCharsMax: 8_000, ...settings }, "test");
    await directory.seed({ name, owner, persona: undefined, settings: parsed }, "test");
    const rights = await rightsOf(database(), { test: "operate" });
    conversation = { agent: name, roomId: newRoom() };
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person])
      await setMember(database(), conversation.roomId, userId, "join");
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage, listTodos] });
    run = () => new TurnRunner(mind, nobodyElse, () => {}).run(conversation);
  };
  const words = (name: string, chars: number) => `${name} ${"lorem ipsum ".repeat(chars / 12)}end`;
  const ask = (body: string) => wake(database(), conversation, { requester: person }, body);
  const named = (body: string): string => body.split(" ", 1)[0] ?? "";
  /** Lists what each look of the model was shown as new. */
  const looks = () => model.requests.map((request) => newMessages(request).map(({ body }) => body));
  const seen = async () => {
    const [row] = await database().sql<{ position: number }[]>`
      select seen_position as position from conversations where agent = ${conversation.agent}`;
    return row?.position;
  };
  const turns = async () =>
    (await database().sql<{ state: string }[]>`select state from turns where agent = ${conversation.agent}`).map(
      ({ state }) => state,
    );

  describe.each(["cacheable", "seed"])("new messages, in the layout %s,", (layout) => {
    it.each(["text", "tool"])(
      "that do not fit at once are shown one after the other, each whole (%s)",
      async (answer) => {
        await begin({ layout, answer });
        const bodies = Array.from({ length: 10 }, (_, n) => words(`m${n}`, 800));
        const asked = [];
        for (const body of bodies) asked.push(await ask(body));
        const reached: unknown[] = [];
        model.onEvery(async (request: ModelRequest) => {
          reached.push(await seen());
          return answer === "text" ? "done" : say(request, conversation.roomId, "done", { final: true });
        });
        await run();
        const first = looks().flatMap((shown, look) => {
          const before = new Set(looks().slice(0, look).flat());
          return shown.filter((body) => !before.has(body));
        });
        expect(first).toEqual(bodies);
        expect(looks().length).toBeGreaterThan(1);
        expect(looks().length).toBeLessThan(6);
        // Messages that were left out were not seen yet.
        expect(reached[1]).toBe(asked[(looks()[0]?.length ?? 0) - 1]?.position);
        expect(await seen()).toBe(asked.at(-1)?.position);
        expect(await turns()).toEqual(["done"]);
      },
    );

    it("are all there while the agent works on them, and the others come once it is done", async () => {
      await begin({ layout });
      for (let n = 0; n < 10; n++) await ask(words(`m${n}`, 700));
      model
        .on(
          () => true,
          (request: ModelRequest) => ({ call: toolName(request, "TodosList"), arguments: {} }),
          { times: 1 },
        )
        .onEvery((request) => say(request, conversation.roomId, "done", { final: true }));
      await run();
      const names = looks().map((shown) => shown.map(named));
      expect(names[1]?.[0]).toBe("m0");
      expect(names[2]).not.toContain("m0");
      expect(new Set(names.flat()).size).toBe(10);
    });

    it("are cut where one alone is too long, which is shown once", async () => {
      await begin({ layout });
      await ask(words("long", 12_000));
      model.onEvery((request) => say(request, conversation.roomId, "done", { final: true }));
      await run();
      expect(looks().map((shown) => shown.map(named))).toEqual([["long"]]);
    });
  });

  it("a turn whose events were all redacted before it began ends without a word of the model", async () => {
    await begin({});
    const { eventId } = await ask("never mind");
    await new Events(database()).redact(eventId);
    await run();
    expect(model.requests).toEqual([]);
    expect(await turns()).toEqual(["done"]);
  });

  it("a turn that something else woke, too, goes on without what was redacted", async () => {
    await begin({});
    const { eventId } = await ask("never mind");
    await ask("what is new?");
    await new Events(database()).redact(eventId);
    model.onEvery((request) => say(request, conversation.roomId, "done", { final: true }));
    await run();
    expect(looks()).toEqual([["what is new?"]]);
  });
});
