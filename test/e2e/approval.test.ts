import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { newMessages, toolName } from "../support/scripted-model.ts";
import { answer, callsOf, turnOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const bot = "@clevernet:clevernet.test";

/** A question as people see it. */
interface Card extends Message {
  readonly operation: number;
  /** Number of the request that led to it. */
  readonly n: number;
}

describe("approvals", () => {
  let stage: Stage;
  let admin: TestUser;
  /** May decide. */
  let ann: TestUser;
  /** May only talk. */
  let ben: TestUser;
  let room: string;
  let control: string;

  beforeAll(async () => {
    stage = await Stage.set({
      database: "embedded",
      agents: { helper: { mode: "create" } },
      permissions: {
        "@admin:clevernet.test": "admin",
        "@ann:clevernet.test": "operate",
        "@*:clevernet.test": "chat",
      },
    });
    // Obeys: `do 1 TOOL JSON` is called as it is written, and the result is said.
    stage.model.on(/\bdo \d+ /, (request) => {
      const words = newMessages(request).findLast(({ body }) => /\bdo \d+ /.test(body))?.body ?? "";
      const [, number, name = "", json = ""] = /\bdo (\d+) (\w+) (.*)/s.exec(words) ?? [];
      const [call] = callsOf(request);
      return call
        ? answer(request, `RESULT ${number}: ${call.result}`)
        : { call: toolName(request, name), arguments: json };
    });
    stage.model.onEvery((request) => answer(request, "I have heard you."));
    await stage.bridge.start();
    [admin, ann, ben] = await Promise.all([stage.user("admin"), stage.user("ann"), stage.user("ben")]);
    room = await stage.room(ann, [ben], ["helper"]);
  });
  afterAll(() => stage.strike());

  const relation = ({ content }: Message) => (content["m.relates_to"] ?? {}) as Record<string, unknown>;
  const isAnswerTo =
    (id: string) =>
    ({ content }: Message) =>
      JSON.stringify(content).includes(id);
  /** Gives a command; returns the bridge's answer. */
  const command = async (line: string, { by = ann, where = room } = {}): Promise<string> =>
    (await by.waitForMessage(where, isAnswerTo(await by.say(where, line)))).body;
  const at = (name: string) => `rooms:/${room}/${name}`;
  const cards = new Set<string>();
  let requests = 0;
  const request = async (tool: string, input: object, { by = ann, where = room } = {}): Promise<number> => {
    const n = ++requests;
    await by.mention(where, stage.agentId(), `do ${n} ${tool} ${JSON.stringify(input)}`);
    return n;
  };
  const nextCard = async (n: number, { by = ann, where = room } = {}): Promise<Card> => {
    const isNew = ({ id, content }: Message) => "org.clevernet.operation" in content && !cards.has(id);
    const card = await by.waitForMessage(where, isNew);
    cards.add(card.id);
    return { ...card, n, operation: Number(card.content["org.clevernet.operation"]) };
  };
  /** Has the agent try something that it may not do unasked. */
  const ask = async (tool: string, input: object, options: { by?: TestUser; where?: string } = {}) =>
    nextCard(await request(tool, input, options), options);
  /** Somebody writes a file, and the agent wants to delete it. */
  const askToDelete = async (name: string): Promise<Card> => {
    expect(await command(`!write ${at(name)} text`)).toContain("was written");
    return ask("FS_Delete", { path: at(name) });
  };
  /** Result that the model got in the end. */
  const result = async ({ n }: Pick<Card, "n">, { by = ann, where = room } = {}): Promise<string> =>
    (await by.waitForMessage(where, ({ body }) => body.startsWith(`RESULT ${n}: `))).body;
  const results = async ({ n }: Card) =>
    (await ann.messages(room)).filter(({ body }) => body.startsWith(`RESULT ${n}: `)).length;
  /** The card as it reads once it says this. */
  const outcome = async ({ id }: Card, words: string, { by = ann, where = room } = {}): Promise<string> => {
    const edits = ({ content }: Message) =>
      (content["m.relates_to"] as { event_id?: string } | undefined)?.event_id === id &&
      "m.new_content" in content &&
      JSON.stringify(content["m.new_content"]).includes(words);
    return (await by.waitForMessage(where, edits)).body;
  };
  /** Who has reacted to an event, and how, in order. */
  const signs = async (id: string, { by = ann, where = room } = {}): Promise<string[]> => {
    const path = `v1/rooms/${encodeURIComponent(where)}/relations/${encodeURIComponent(id)}/m.annotation`;
    const { chunk } = (await by.api("GET", path, { query: { dir: "f" } })) as { chunk: Message[] };
    return chunk.map((event) => `${event.sender} ${relation(event).key}`);
  };
  const exists = async (name: string) => /^version: /m.test(await command(`!stat ${at(name)}`));
  const bySign = (...keys: string[]) => keys.map((key) => `${stage.agentId()} ${key}`);

  describe("a card", () => {
    let card: Card;
    beforeAll(async () => {
      card = await askToDelete("one.md");
    });

    it("says in the room what is asked, and notifies those who may decide", () => {
      expect(card.sender).toBe(stage.agentId());
      expect(card.content["m.mentions"]).toEqual({ user_ids: [ann.id] });
      expect(card.body).toMatch(/^\*\*Delete `one.md`\?\*\*/);
      expect(card.body).not.toContain(room);
      expect(card.body).toContain(`!approve ${card.operation}`);
      expect(card.body).toContain(`May decide: ${ann.id}, until tomorrow, `);
    });

    it("has its signs below it", async () => {
      await expect.poll(() => signs(card.id)).toEqual(bySign("✅", "❌"));
    });

    it("is not decided by those who may not, by other events, edits, other signs, or what is taken back", async () => {
      await ben.react(room, card.id, "✅");
      const other = await ann.say(room, "that is another event", { msgtype: "m.notice" });
      await ann.react(room, other, "✅");
      await ann.react(room, card.id, "👍");
      await ann.edit(room, card.id, "✅");
      const held = stage.toBridge.hold();
      const { id, sender } = card;
      // While this is held on its way, what follows comes together.
      await ann.say(room, "that is on its way", { msgtype: "m.notice" });
      await held.reached();
      await ann.redact(room, await ann.react(room, id, "❌"));
      held.lift();
      await ben.reply(room, id, "no, leave it");
      await ben.waitForMessage(room, ({ body }) => body === "I have heard you.");
      expect(sender).toBe(stage.agentId());
      expect(await exists("one.md")).toBe(true);
      expect(await results(card)).toBe(0);
    });

    it("with ✅ by somebody who may lets it be carried out, once, and says so", async () => {
      const sign = await ann.react(room, card.id, "✅️");
      expect(await result(card)).toContain("was deleted");
      expect(await outcome(card, "and done")).toContain(`Approved by ${ann.id}`);
      expect(await exists("one.md")).toBe(false);
      await ann.redact(room, sign);
      await ann.react(room, card.id, "✅");
      expect(await command(`!approve ${card.operation}`)).toBe(
        `Operation ${card.operation} was already approved by ${ann.id}.`,
      );
      expect(await results(card)).toBe(1);
    });
  });

  it("❌ denies, and the model is told by whom", async () => {
    const card = await askToDelete("two.md");
    await ann.react(room, card.id, "❌");
    expect(await result(card)).toContain(`${ann.id} has denied it`);
    expect(await outcome(card, "Denied")).toContain(`by ${ann.id}`);
    expect(await exists("two.md")).toBe(true);
  });

  it("an answer to a card denies with its text as the reason, and wakes nobody", async () => {
    const card = await ask("FS_Delete", { path: at("two.md") });
    await ann.reply(room, card.id, "not before Sunday");
    expect(await result(card)).toContain(`${ann.id} has denied it: not before Sunday`);
    expect(await outcome(card, "Denied")).toContain("not before Sunday");
    const woken = stage.model.requests.filter((one) =>
      newMessages(one).some(({ body }) => body === "not before Sunday"),
    );
    expect(new Set(woken.map(turnOf)).size).toBeLessThanOrEqual(1);
  });

  it("commands decide as well, and answer in plain words what became of it", async () => {
    const other = await stage.directRoom(ann);
    const card = await ask("FS_Delete", { path: at("two.md") });
    const n = card.operation;
    expect(await command(`!approve ${n}`, { by: ben })).toContain("you need the right to operate; you have: chat");
    expect(await command(`!approve ${n}`, { where: other })).toContain(`Operation ${n} does not belong to this room`);
    expect(await command("!approve 999999")).toBe("There is no operation 999999.");
    expect(await command(`!deny ${n} it is mine`)).toBe(`Operation ${n} is denied.`);
    expect(await command(`!approve ${n}`)).toBe(`Operation ${n} was already denied by ${ann.id}.`);
    expect(await result(card)).toContain(`${ann.id} has denied it: it is mine`);
  });

  it("what fails after all is told on the card", async () => {
    const card = await askToDelete("three.md");
    await command(`!rm ${at("three.md")}`);
    expect(await command(`!approve ${card.operation}`)).toBe(
      `Operation ${card.operation} is approved, and is being carried out.`,
    );
    expect(await outcome(card, "and failed")).toContain(`Approved by ${ann.id}`);
  });

  it("an input that is too long to be shown can only be denied", async () => {
    const input = { path: at("two.md"), content: `${"long ".repeat(2_000)}the end` };
    const card = await ask("FS_WriteFile", input);
    expect(card.body).toContain("too long to be shown");
    expect(card.body).toMatch(/long long.*‹\d+ lines are left out here›.*the end/s);
    await expect.poll(() => signs(card.id)).toEqual(bySign("❌"));
    await ann.react(room, card.id, "✅");
    expect(await command(`!approve ${card.operation}`)).toContain("can only be denied");
    await ann.react(room, card.id, "❌");
    expect(await result(card)).toContain("has denied it");
  });

  it("another input is asked for anew", async () => {
    const first = await askToDelete("four.md");
    await ann.react(room, first.id, "✅");
    await result(first);
    const second = await askToDelete("five.md");
    expect(second.operation).not.toBe(first.operation);
    await ann.react(room, second.id, "❌");
    await result(second);
  });

  it("a process that dies between a card and its signs leaves one of each", async () => {
    const isSign = { when: ({ path }: { path: string }) => path.includes("/send/m.reaction/"), times: 1 };
    const sign = stage.toHomeserver.holdAnswer(isSign);
    const card = await askToDelete("six.md");
    await sign.reached();
    await stage.bridge.kill();
    sign.lift();
    await stage.bridge.start();
    await expect.poll(() => signs(card.id)).toEqual(bySign("✅", "❌"));
    await ann.react(room, card.id, "✅");
    expect(await result(card)).toContain("was deleted");
    expect(await results(card)).toBe(1);
  });

  it("a card that is refused has no signs, and nobody is told of those", async () => {
    const forbidden = { status: 403, body: { errcode: "M_FORBIDDEN", error: "not here" } };
    // Thoughts are told meanwhile, in a room of their own.
    const isMessage = ({ path }: { path: string }) =>
      path.includes(`/rooms/${encodeURIComponent(room)}/send/m.room.message/`);
    expect(await command(`!write ${at("seven.md")} text`)).toContain("was written");
    const before = stage.toHomeserver.requests.filter(({ path }) => path.includes("/send/m.reaction/")).length;
    const refusal = stage.toHomeserver.respond(forbidden, { when: isMessage, times: 1 });
    await request("FS_Delete", { path: at("seven.md") });
    await refusal.reached();
    // Later messages in the room are sent.
    const operation = Number(/\d+/.exec(await command("!operations 1"))?.[0]);
    await command(`!deny ${operation}`);
    const after = stage.toHomeserver.requests.filter(({ path }) => path.includes("/send/m.reaction/")).length;
    expect(after).toBe(before);
  });

  it("what was asked for by a message that is edited or taken back is withdrawn, and its card says so", async () => {
    for (const how of ["edited", "taken back"] as const) {
      const name = `${how.replace(" ", "-")}.md`;
      expect(await command(`!write ${at(name)} text`)).toContain("was written");
      const n = ++requests;
      const line = `do ${n} FS_Delete ${JSON.stringify({ path: at(name) })}`;
      const id = await ann.mention(room, stage.agentId(), line);
      const card = await nextCard(n);
      if (how === "edited") await ann.edit(room, id, `do ${n} FS_Read {}`);
      else await ann.redact(room, id);
      expect(await outcome(card, "Withdrawn")).toContain(how);
      await ann.react(room, card.id, "✅");
      expect(await command(`!approve ${card.operation}`)).toContain("was withdrawn");
      expect(await exists(name)).toBe(true);
    }
  });

  it("an approval counts for the file that was there: another one asks again", async () => {
    const [source, target] = [at("source.md"), at("target.md")];
    for (const path of [source, target]) expect(await command(`!write ${path} old`)).toContain("was written");
    const card = await ask("FS_Copy", { path: source, target });
    expect(card.body).toContain("source.md` (version 1)");
    expect(await command(`!write ${source} new`)).toContain("version 2");
    await ann.react(room, card.id, "✅");
    const again = await nextCard(card.n);
    expect(again.body).toContain("source.md` (version 2)");
    expect(await command(`!cat ${target}`)).toContain("old");
    await ann.react(room, again.id, "✅");
    expect(await result(card)).toContain("was written");
    expect(await command(`!cat ${target}`)).toContain("new");
  });

  describe("🛑 on what an agent has said", () => {
    it("ends what waits, by whomever it is done for or who may decide, and the card says so", async () => {
      const card = await ask("FS_Delete", { path: at("two.md") });
      const { id } = await ann.waitForMessage(room, ({ body }) => body === "I have heard you.");
      await ben.react(room, id, "🛑");
      await ann.react(room, id, "🛑");
      expect(await outcome(card, "Interrupted")).toContain(`stopped by ${ann.id}`);
      expect(await command(`!approve ${card.operation}`)).toBe(`Operation ${card.operation} was stopped.`);
    });

    it("ends what it thinks", async () => {
      stage.model.on("think for ever", { hangs: true });
      await ann.mention(room, stage.agentId(), "think for ever");
      const thinking = await stage.model.request("think for ever");
      const { id } = await ann.waitForMessage(room, ({ body }) => body.startsWith("RESULT 1: "));
      await ann.react(room, id, "🛑");
      await thinking.closed;
      expect(thinking.wasAborted).toBe(true);
    });
  });

  describe("where nobody may decide", () => {
    let bens: string;
    beforeAll(async () => {
      bens = await stage.directRoom(ben);
    });

    it("and without a control room it is refused", async () => {
      const n = await request("FS_WriteFile", { path: `rooms:/${bens}/a.md`, content: "x" }, { by: ben, where: bens });
      expect(await result({ n }, { by: ben, where: bens })).toContain(
        "nobody may approve it, neither here nor in a control room",
      );
    });

    it("the control room is asked, by the bot, and the room is told", async () => {
      const first = await admin.createDirectRoom(bot);
      await admin.waitForMembership(first, "join", bot);
      const invited = () => admin.client.getRooms().find((one) => one.name === "Clevernet: control room");
      control = (await eventually(invited, { what: "the control room" })).roomId;
      await admin.join(control);
      await admin.waitForMembership(control, "join");
      const asked = await request("SetAgentParameters", { wakeUpTimerSeconds: 10_800 }, { by: ben, where: bens });
      const card = await nextCard(asked, { by: admin, where: control });
      expect(card.sender).toBe(bot);
      expect(card.body).toContain(`(${stage.agentId()}), in \`${bens}\``);
      await ben.waitForMessage(bens, ({ body }) => body.startsWith("Nobody here may approve"));
      const options = { by: admin, where: control };
      await expect.poll(() => signs(card.id, options)).toEqual([`${bot} ✅`, `${bot} ❌`]);
      await admin.react(control, card.id, "✅");
      expect(await result(card, { by: ben, where: bens })).toContain("10800");
      expect(await outcome(card, "and done", options)).toContain(`Approved by ${admin.id}`);
    });
  });

  describe("a bridge that is killed while something waits", () => {
    let card: Card;
    let changed: Card;
    let late: Card;
    beforeAll(async () => {
      card = await askToDelete("eight.md");
      changed = await askToDelete("nine.md");
      late = await askToDelete("ten.md");
      await stage.bridge.kill();
      await ann.react(room, card.id, "✅");
      // The call that the model wanted reads differently by now.
      await stage.query(
        `update steps set result = replace(result::text, 'nine.md', 'two.md')::jsonb
         where turn_id = (select turn_id from operations where id = ${changed.operation})`,
      );
      await stage.query(`update operations set expires_at = now() - interval '1 second' where id = ${late.operation}`);
      await stage.bridge.start();
    });

    it("goes on with what was decided meanwhile", async () => {
      expect(await result(card)).toContain("was deleted");
      expect(await results(card)).toBe(1);
    });

    it("tells people and the agent what has expired", async () => {
      expect(await outcome(late, "Expired")).toContain("not carried out");
      expect(await result(late)).toContain("nobody has approved it in time");
      expect(await command(`!approve ${late.operation}`)).toBe(
        `Operation ${late.operation} has expired: nobody had decided in time.`,
      );
    });

    it("takes an approval for nothing but the input that was asked for", async () => {
      await ann.react(room, changed.id, "✅");
      const again = await nextCard(changed.n);
      expect(again.body).toContain("Delete `two.md`?");
      expect([await exists("nine.md"), await exists("two.md")]).toEqual([true, true]);
      await ann.react(room, again.id, "✅");
      expect(await result(changed)).toContain("was deleted");
      expect([await exists("nine.md"), await exists("two.md")]).toEqual([true, false]);
    });
  });

  it("leave nothing unfinished, and nothing sent twice or out of order", () => stage.check());
});
