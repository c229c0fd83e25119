import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import {
  count,
  isTransaction,
  killedOnEachDatabase,
  nextTransaction,
  push,
  pushText,
  quiet,
  saidIn,
} from "../support/faults.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const isAnswerTo = (text: string) => (message: Message) => message.body === answerTo(text);

/** How often the homeserver pushed a transaction. */
const deliveries = ({ toBridge }: Stage, path: string) => toBridge.requests.filter((one) => one.path === path).length;

killedOnEachDatabase((scene) => {
  it("an event whose transaction dies with the bridge before it is stored is delivered again and answered once", async () => {
    const { stage, ann, room } = scene();
    stage.model.on("one", answerEach);
    // A transaction that the bridge has not read, or the database has not heard, is not stored.
    if (stage.toDatabase) stage.toDatabase.hold();
    else stage.bridge.signal("SIGSTOP");
    const transaction = nextTransaction(stage.toBridge);
    const id = await ann.say(room, "one");
    const { path } = await transaction();
    await stage.bridge.kill();
    stage.toDatabase?.cut();
    stage.toDatabase?.release();
    expect(await count(stage, `events where event_id = '${id}'`)).toBe(0);

    await stage.bridge.start();
    await ann.waitForMessage(room, isAnswerTo("one"));
    expect(deliveries(stage, path)).toBeGreaterThan(1);
    await stage.check();
    expect(await count(stage, `events where event_id = '${id}'`)).toBe(1);
    expect(await count(stage, `turns where room_id = '${room}'`)).toBe(1);
    expect(await saidIn(ann, room)).toEqual(["one", answerTo("one")]);
  });

  it("an event that is stored when the bridge dies before its 200 is delivered again and answered once", async () => {
    const { stage, ann, room } = scene();
    stage.model.on("two", answerEach);
    const answer = stage.toBridge.holdAnswer({ when: isTransaction, times: 1 });
    const id = await ann.say(room, "two");
    const { path } = await answer.reached();
    await stage.bridge.kill();
    stage.toBridge.cut();
    answer.lift();
    expect(await count(stage, `events where event_id = '${id}'`)).toBe(1);

    await stage.bridge.start();
    await ann.waitForMessage(room, isAnswerTo("two"));
    await expect.poll(() => deliveries(stage, path)).toBeGreaterThan(1);
    await stage.check();
    expect(await count(stage, `events where event_id = '${id}'`)).toBe(1);
    expect(await count(stage, `turns where room_id = '${room}'`)).toBe(1);
    expect(await saidIn(ann, room)).toEqual(["two", answerTo("two")]);
  });
});

describe("while it runs", () => {
  let stage: Stage;
  let ann: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres" });
    stage.model.onEvery(answerEach);
    ann = await stage.user("ann");
    await stage.bridge.start();
  });
  beforeEach(async () => {
    room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
  });
  afterAll(() => stage.strike());

  /** A message of the room that only the bridge is told of. */
  const pushed = (id: string, fields: object = {}) => ({
    event_id: `$${id}:${room}`,
    room_id: room,
    sender: ann.id,
    type: "m.room.message",
    content: { msgtype: "m.text", body: id },
    origin_server_ts: Date.now(),
    ...fields,
  });

  it("new events under a known transaction id are taken", async () => {
    expect(await push(stage, "known", [pushed("eleven")])).toBe(200);
    await ann.waitForMessage(room, isAnswerTo("eleven"));
    expect(await push(stage, "known", [pushed("eleven"), pushed("twelve")])).toBe(200);
    await ann.waitForMessage(room, isAnswerTo("twelve"));
    await stage.check();
    expect(await saidIn(ann, room)).toEqual([answerTo("eleven"), answerTo("twelve")]);
  });

  it("a transaction of 6.5 MB is taken", async () => {
    const content = { msgtype: "m.notice", body: "x".repeat(65_000) };
    const events = Array.from({ length: 100 }, (_, index) => pushed(`large${index}`, { content }));
    expect(JSON.stringify(events).length).toBeGreaterThan(6_500_000);
    expect(await push(stage, "large", events)).toBe(200);
    await ann.say(room, "fourteen");
    await ann.waitForMessage(room, isAnswerTo("fourteen"));
    await stage.check();
    expect(await count(stage, `events where event_id like '$large%'`)).toBe(100);
  });

  it("poison that the homeserver lets through is taken, and the next event answered", async () => {
    const contents = [
      { msgtype: "m.text", body: "\0" },
      { msgtype: "m.notice", body: "odd", "m.mentions": { user_ids: ["@"] }, "m.new_content": [] },
      { msgtype: "m.notice", body: "notice \uFFFE" },
      { msgtype: "m.notice", body: "x".repeat(60_000) },
    ];
    for (const content of contents) await ann.send(room, "m.room.message", content);
    await ann.say(room, "\uFFFE");
    await ann.say(room, "fifteen");
    await ann.waitForMessage(room, isAnswerTo("fifteen"));
    await stage.check();
    expect(await count(stage, `quarantine where convert_from(raw, 'utf8') like '%${room}%'`)).toBe(1);
  });

  it("poison that no homeserver should send is quarantined, and the rest of its transaction answered", async () => {
    const quarantined = await count(stage, "quarantine");
    const deep = `${'{"a":'.repeat(200)}1${"}".repeat(200)}`;
    const poison = [
      null,
      7,
      "text",
      [],
      {},
      pushed("nul", { content: { body: "\0" } }),
      pushed("half", { content: { body: "\ud800" } }),
      pushed("huge", { content: { body: "x".repeat(65_536) } }),
      pushed("deep", { content: JSON.parse(deep) }),
      pushed("list", { content: [] }),
      pushed("time", { origin_server_ts: "yesterday" }),
      pushed("id", { event_id: 5 }),
      pushed("room", { room_id: null }),
      pushed("sender", { sender: { name: "ann" } }),
      pushed("type", { type: 5 }),
      pushed("key", { type: "m.room.name", state_key: 5 }),
    ];
    const odd = [
      pushed("body", { content: { msgtype: "m.text", body: { text: "no text" } } }),
      pushed("msgtype", { content: { msgtype: ["m.text"], body: "type" } }),
      pushed("mentions", { content: { msgtype: "m.notice", body: "odd", "m.mentions": { user_ids: [1, null, {}] } } }),
      pushed("typeless", { content: { body: "no type" } }),
      pushed("relation", { content: { msgtype: "m.notice", body: "odd", "m.relates_to": [] } }),
      pushed("member", { type: "m.room.member", state_key: "@odd:clevernet.test", content: { membership: [] } }),
      pushed("levels", { type: "m.room.power_levels", state_key: "", content: { users: "everybody", redact: {} } }),
      pushed("redaction", { type: "m.room.redaction", content: { redacts: {} } }),
    ];
    expect(await push(stage, "poison", [...poison, ...odd, pushed("after")])).toBe(200);
    await ann.waitForMessage(room, isAnswerTo("after"));
    await stage.check();
    expect(await count(stage, "quarantine")).toBe(quarantined + poison.length);
    // Of messages remains that they came.
    expect(await count(stage, `events where event_id like '%:${room}'`)).toBe(odd.length + 4 + 1);
  });

  it("what is nested a hundred thousand levels deep is quarantined, and the rest of its transaction answered", async () => {
    const quarantined = await count(stage, "quarantine");
    const nest = (open: string, close: string) => `${open.repeat(100_000)}1${close.repeat(100_000)}`;
    const events = [
      JSON.stringify(pushed("deep content", { content: "NEST" })).replace('"NEST"', nest('{"a":', "}")),
      nest("[", "]"),
      JSON.stringify(pushed("deep field", { unsigned: "NEST" })).replace('"NEST"', nest('{"a":', "}")),
      JSON.stringify(pushed("behind it")),
    ];
    expect(await pushText(stage, "deepest", `{"events":[${events.join(",")}]}`)).toBe(200);
    expect(await pushText(stage, "deepest of all", `{"events":${nest('{"a":', "}")}}`)).toBe(200);
    await ann.waitForMessage(room, isAnswerTo("behind it"));
    await stage.check();
    expect(await count(stage, "quarantine")).toBe(quarantined + 3);
  });

  it("an event that the database cannot take is quarantined alone", async () => {
    const quarantined = await count(stage, "quarantine");
    await stage.query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'index row size exceeds maximum' using errcode = '54000'; end $$;
      create trigger refuse before insert on events for each row
        when (new.event_id like '$refused%' and not new.content ? 'org.clevernet.unreadable') execute function refuse()`);
    expect(await push(stage, "refused", [pushed("before it"), pushed("refused"), pushed("after it")])).toBe(200);
    await ann.waitForMessage(room, isAnswerTo("after it"));
    await stage.query("drop trigger refuse on events");
    await stage.check();
    expect(await count(stage, "quarantine")).toBe(quarantined + 1);
  });

  it("commands that the database cannot take are answered, and so is what comes behind them", async () => {
    const admin = await stage.user("admin");
    const place = await stage.directRoom(admin);
    const letters = (length: number) =>
      Array.from({ length }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7_919 + n * n * 31) % 20_000))).join("");
    await admin.say(place, `!write rooms:/${place}/a.md one`);
    const commands: [string, RegExp][] = [
      ["!schedule --at +275760-09-13T00:00 wake up", /too far away: the last year is 9999/],
      [`!open --line 3000000000 rooms:/${place}/a.md`, /--line/],
      [`!open --line 2147483647 rooms:/${place}/a.md`, /./],
      [`!search rooms:/${letters(1_500)} ${letters(400)}`, /./],
      [`!write rooms:/${place}/${letters(1_000)} two`, /./],
      ["!todo done 2147483647", /2147483647/],
      ["!restore rooms:/a 9999999999", /./],
      ["!operation 9007199254740991", /9007199254740991/],
      ["!show turn 9007199254740991", /9007199254740991|no turn/i],
    ];
    for (const [command, answer] of commands) {
      const id = await admin.say(place, command);
      const isAnswer = ({ body, content }: Message) => content["org.clevernet.command"] === id && answer.test(body);
      await admin.waitForMessage(place, isAnswer, { what: command.slice(0, 40) });
    }
    await admin.say(place, "seventeen");
    await admin.waitForMessage(place, isAnswerTo("seventeen"));
    expect(await count(stage, "quarantine where reason like '%routed%'")).toBe(0);
    await stage.check();
  });

  it("what is no transaction at all is taken, and the next one answered", async () => {
    for (const body of ["", "no JSON", "[]", "null", '{"events":{}}']) {
      expect(await pushText(stage, `none${body}`, body)).toBe(200);
    }
    await ann.say(room, "sixteen");
    await ann.waitForMessage(room, isAnswerTo("sixteen"));
    await stage.check();
  });
});
