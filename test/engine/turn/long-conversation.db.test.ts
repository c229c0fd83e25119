import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, RoomId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import type { LayoutName } from "../../../src/base/prompt/layout.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { readPrompt } from "../../../src/edges/demo/rehearsal-view.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { all, textOf } from "../../support/elements.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, settleEvent, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say } from "../../support/scripted-model.ts";

const exchanges = 100;
const rooms = 12;
const words = "we could look at the plan, ask <those> who were there & write down what it costs; ";

/** A call of the model, as its provider sees it. */
interface Sent {
  readonly room: string;
  readonly question: string;
  readonly system: string;
  readonly user: string;
}

onEachDatabase((database) => {
  /** A person and an agent talk: two of three messages in one room, the others in eleven more. */
  const converse = async (charsMax: number, layout: LayoutName): Promise<Sent[]> => {
    const name = newKey().replace(" ", "") as AgentName;
    const [owner, person] = [newUser(), newUser()];
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const settings = parseAgentSettings({ approxContextCharsMax: charsMax, layout }, "test");
    await directory.seed({ name, owner, persona: undefined, settings }, "test");
    const agent = await directory.find(name);
    if (!agent) throw new Error("no agent");
    const places = Array.from(
      { length: rooms },
      () => `${newRoom().replace(":test", "")}abcdefghijkl:example.org` as RoomId,
    );
    for (const roomId of places)
      for (const userId of [person, agent.userId]) await setMember(database(), roomId, userId, "join");
    const sent: Sent[] = [];
    let room = places[0] as RoomId;
    let [question, answer] = ["", ""];
    const model = await new ScriptedModel().start();
    model.on(
      ({ body }) => body.messages.at(-1)?.content.includes("Summarize in at most") === true,
      "They asked, and were answered. ".repeat(40),
    );
    model.onEvery((request: ModelRequest) => {
      const textOf = (role: string) => request.body.messages.find((message) => message.role === role)?.content ?? "";
      sent.push({ room, question, system: textOf("system"), user: textOf("user") });
      return [{ reasoning: "They ask, and I answer." }, say(request, room, answer, { final: true })];
    });
    const guide = await readFile(new URL("../../../src/app/shipped/guides/clevernet.md", import.meta.url), "utf8");
    const shipped = new Map([["/guides/clevernet.md", guide]]);
    const rights = await rightsOf(database(), { test: "operate" });
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage], shipped });
    const runner = new TurnRunner(mind, nobodyElse, () => {});
    for (let n = 0; n < exchanges; n++) {
      room = places[n % 3 === 0 ? (n / 3) % rooms : 0] as RoomId;
      question = `question ${n}: ${words.repeat(n % 3)}`.trim();
      answer = `answer ${n}: ${words.repeat(n % 4)}`.trim();
      await wake(database(), { agent: name, roomId: room }, { requester: person }, question);
      await runner.run({ agent: name, roomId: room });
      const content = { msgtype: "m.text", body: answer };
      await settleEvent(database(), { roomId: room, sender: agent.userId, content });
    }
    await mind.summaries.stop();
    await model.stop();
    return sent;
  };

  /** Calls that did not show the whole of the message that they were to answer, or left out another. */
  const unseen = (sent: readonly Sent[]) =>
    sent.filter(({ room, user, question }) => {
      const own = readPrompt([{ role: "user", content: user }])
        .flatMap((root) => all(root, "room"))
        .filter(({ attributes }) => attributes.roomId === room)
        .flatMap((shown) => all(shown, "newEvents"));
      const bodies = own.flatMap((shown) => all(shown, "message")).map(textOf);
      return !bodies.includes(question) || own.some(({ attributes }) => attributes.eventsLeftOut !== undefined);
    });

  it.each([
    [8_000, "cacheable"],
    [50_000, "cacheable"],
    [8_000, "seed"],
  ] as const)(
    "an agent of %d characters sees each new message in the layout %s",
    async (charsMax, layout) => {
      const sent = await converse(charsMax, layout);
      expect(unseen(sent).map(({ question }) => question)).toEqual([]);
      expect(new Set(sent.map(({ system }) => system)).size).toBe(1);
      if (charsMax >= 50_000) for (const { system } of sent) expect(system).not.toMatch(/ truncated[ >]/);
      for (const { system, user } of sent) expect(system.length + user.length).toBeLessThanOrEqual(charsMax);
    },
    180_000,
  );
});
