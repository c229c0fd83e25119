import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { shardCount, shardOf } from "../../src/adapters/database/shards.ts";
import { percentile } from "../bench/table.ts";
import { answerTo } from "./answers.ts";
import { count, isTransaction, push, quiet } from "./faults.ts";
import { isCard, isResult, resultOf } from "./obedient.ts";
import { eventually } from "./poll.ts";
import type { PostgresServer } from "./postgres.ts";
import type { Stage } from "./stage.ts";
import type { Message, TestUser } from "./user.ts";

/** Somebody talks in the rooms until the ordeal is over; everything was answered then, once and in order. */
export async function talkThrough(
  stage: Stage,
  person: TestUser,
  rooms: readonly string[],
  pauseMs: number,
  ordeal: () => Promise<void>,
): Promise<void> {
  let isOver = false;
  const talk = async (room: string): Promise<string[]> => {
    const texts: string[] = [];
    while (!isOver) {
      const text = `${texts.length + 1} of ${room.slice(1, 9)}`;
      texts.push(text);
      await person.say(room, text);
      await sleep(Math.random() * pauseMs);
    }
    return texts;
  };
  const talking = Promise.all(rooms.map(talk));
  try {
    await ordeal();
  } finally {
    isOver = true;
  }
  for (const [index, texts] of (await talking).entries()) {
    const room = rooms[index] ?? "";
    const expected = texts.map(answerTo);
    await person.waitForMessage(room, ({ body }) => body === expected.at(-1), { within: 90_000 });
  }
  await stage.check();
  for (const [index, texts] of (await talking).entries()) {
    const messages = await person.messages(rooms[index] ?? "");
    const answers = messages.filter(({ sender }) => sender !== person.id).map(({ body }) => body);
    expect(answers.filter((body) => texts.map(answerTo).includes(body))).toEqual(texts.map(answerTo));
  }
}

/** Somebody asks for what has to be approved, and approves it, until the ordeal is over: each is done and told once. */
export async function askThrough(
  stage: Stage,
  person: TestUser,
  room: string,
  ordeal: Promise<unknown>,
): Promise<void> {
  let isOver = false;
  const ended = ordeal.finally(() => {
    isOver = true;
  });
  let asked = 0;
  const decided = new Set<string>();
  while (!isOver) {
    await person.say(room, `do ${++asked} FS_Delete {"path":"rooms:/${room}/none.md"}`);
    const isNew = (message: Message) => isCard(message) && !decided.has(message.id);
    const { id } = await person.waitForMessage(room, isNew, { within: 90_000 });
    decided.add(id);
    await person.react(room, id, "✅");
    await resultOf(person, room, asked, 90_000);
  }
  await ended;
  const messages = await person.messages(room);
  expect(messages.filter(isCard)).toHaveLength(asked);
  for (let n = 1; n <= asked; n++) expect(messages.filter(isResult(n))).toHaveLength(1);
  expect(await count(stage, `operations where room_id = '${room}' and state = 'failed' and tool = 'FS_Delete'`)).toBe(
    asked,
  );
}

/** PostgreSQL restarts again and again, every 5 to 10 s. */
export async function restartOften(server: PostgresServer, forMs: number): Promise<void> {
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    await sleep(5_000 + Math.random() * 5_000);
    await server.restart();
  }
}

/** Waits until the processes have shared the rooms out; returns a new room of the person's for each of them. */
export async function shareRooms(stage: Stage, person: TestUser): Promise<string[]> {
  const fair = Math.ceil(shardCount / stage.bridges.length);
  const holders = `select session from shards where until > now() group by session having count(*) = ${fair}`;
  const look = async () => (await stage.query(holders)).length === stage.bridges.length;
  await eventually(look, { within: 60_000, what: "rooms to be shared" });
  const rooms = new Map<string, string>();
  while (rooms.size < stage.bridges.length) {
    const room = await stage.directRoom(person);
    const [holder] = await stage.query<{ session: string }>(
      `select session from shards where shard = ${shardOf(room)}`,
    );
    if (holder) rooms.set(holder.session, room);
  }
  return [...rooms.values()];
}

/** When each process has worked a while one is killed; the others have time to take over its rooms. */
export async function killOne(stage: Stage): Promise<void> {
  const runners = "(select runner from turns group by runner having count(*) > 5) runners";
  const look = async () => (await count(stage, runners)) === stage.bridges.length;
  await eventually(look, { within: 30_000, what: "each process to work" });
  await stage.bridge.kill();
  await sleep(20_000);
}

/** The bridge starts while there is no homeserver, which comes after so long. */
export async function startWithoutHomeserver(stage: Stage, person: TestUser, forMs: number): Promise<void> {
  const [room] = [await stage.directRoom(person)];
  await stage.bridge.stop();
  await stage.homeserver.synapse.kill();
  await stage.bridge.start({ isReady: false });
  const ready = async () => (await fetch(`${stage.bridge.url}/health/ready`)).status;
  expect(await ready()).toBe(503);
  await sleep(forMs);
  expect(stage.bridge.isRunning).toBe(true);
  expect(await ready()).toBe(503);
  await stage.homeserver.synapse.restart();
  await eventually(async () => (await ready()) === 200, { within: 60_000, what: "the bridge to be ready" });
  await person.say(room, "there you are");
  await person.waitForMessage(room, ({ body }) => body === answerTo("there you are"), { within: 30_000 });
  await stage.check();
}

/**
 * The model does not answer for so long, in all these rooms. The homeserver is answered meanwhile, at once.
 * @returns the time in ms within which 99 % of the transactions were answered
 */
export async function modelHangs(
  stage: Stage,
  person: TestUser,
  rooms: readonly string[],
  forMs: number,
): Promise<number> {
  const before = stage.toBridge.requests.length;
  const hold = stage.toModel.hold();
  const asked = `think ${before}`;
  await Promise.all(rooms.map((room) => person.say(room, asked)));
  const end = performance.now() + forMs;
  const times: number[] = [];
  while (times.length < 50 || performance.now() < end) {
    const started = performance.now();
    const event = {
      event_id: `$hang${before}-${times.length}`,
      room_id: "!elsewhere:clevernet.test",
      sender: person.id,
      type: "m.room.message",
      content: { msgtype: "m.text", body: "nobody is here" },
      origin_server_ts: Date.now(),
    };
    expect(await push(stage, `hang${before}-${times.length}`, [event])).toBe(200);
    times.push(performance.now() - started);
    await sleep(20);
  }
  hold.lift();
  for (const room of rooms) {
    await person.waitForMessage(room, ({ body }) => body === answerTo(asked), { within: 120_000 });
  }
  await stage.check();
  const pushed = stage.toBridge.requests
    .slice(before)
    .filter(isTransaction)
    .map(({ path }) => path);
  expect(pushed.length).toBe(new Set(pushed).size);
  return percentile(times, 0.99);
}

/** So many events, the last of each room addressed to the agent, come while the bridge is away. */
export async function missEvents(stage: Stage, people: readonly TestUser[], rooms: readonly string[], perRoom: number) {
  const [first] = people as [TestUser];
  await stage.bridge.stop();
  await Promise.all(
    rooms.map(async (room, index) => {
      const person = people[index % people.length] ?? first;
      for (let n = 1; n < perRoom; n++) await person.say(room, `nothing ${n}`);
      await person.say(room, "and you?", { "m.mentions": { user_ids: [stage.agentId()] } });
    }),
  );
  const turns = await count(stage, "turns");
  await stage.bridge.start();
  const answered = ({ body }: { body: string }) => body === answerTo("and you?");
  for (const room of rooms) await first.waitForMessage(room, answered, { within: 120_000 });
  await stage.check();
  const stored = `events where content->>'body' like 'nothing %' or content->>'body' = 'and you?'`;
  expect(await count(stage, stored)).toBe(rooms.length * perRoom);
  expect((await count(stage, "turns")) - turns).toBe(rooms.length);
  // All of this is found before it is pushed, one event after the other; who comes next would wait behind it.
  await quiet(stage.toBridge, 300_000);
}
