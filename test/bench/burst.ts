import { setTimeout as sleep } from "node:timers/promises";
import { answerTo } from "../support/answers.ts";
import type { Person } from "./person.ts";
import { type Answerer, Setting } from "./setting.ts";
import { median, seconds, type Table } from "./table.ts";

const rounds = 3;
const roomCount = 10;
const messagesPerRoom = 10;
/** The process is killed when this many answers were seen. */
const killAfter = 30;
/** Whoever says nothing for so long says nothing any more. */
const silenceMs = 10_000;

interface Outcome {
  /** Until the last answer was seen: from the first message, or from the kill. */
  readonly ms: number;
  readonly lost: number;
  readonly twice: number;
  /** Rooms whose answers are in another order than the questions. */
  readonly disordered: number;
}

/** Ten rooms, ten messages in each of them, all at once; then again, with a `kill -9` in the middle of it. */
export async function burst(postgresUrl: string | undefined): Promise<Table[]> {
  const tables: Table[] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])]) {
    const setting = await Setting.set(url);
    try {
      tables.push(await measure(setting));
    } finally {
      await setting.strike();
    }
  }
  return tables;
}

async function measure(setting: Setting): Promise<Table> {
  const { ours, bot } = setting;
  await Promise.all([ours.start(), bot.start()]);
  const ann = await setting.person("ann");
  const crowds = [await Crowd.gather(ann, bot), await Crowd.gather(ann, ours)];
  const calm: Outcome[][] = crowds.map(() => []);
  const killed: Outcome[][] = crowds.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, crowd] of crowds.entries()) calm[index]?.push(await crowd.ask());
    for (const [index, crowd] of crowds.entries()) killed[index]?.push(await crowd.ask({ kills: true }));
  }
  const rowsOf = (outcomes: readonly Outcome[][], when: string) =>
    crowds.map(({ name }, index) => rowOf(`${name}${when}`, outcomes[index] ?? [], outcomes[0] ?? []));
  return {
    title: `Burst: ${roomCount} rooms × ${messagesPerRoom} messages at once, ${rounds} rounds`,
    columns: ["who answers", "all answered after", "beside the bot", "lost", "twice", "rooms out of order"],
    rows: [...rowsOf(calm, ""), ...rowsOf(killed, ", killed in the middle")],
    note: "time: median of the rounds, from the first message or from the kill; counts: worst round",
  };
}

function rowOf(name: string, outcomes: readonly Outcome[], beside: readonly Outcome[]): string[] {
  const worst = (count: (outcome: Outcome) => number) => String(Math.max(...outcomes.map(count)));
  const isComplete = outcomes.every(({ lost }) => lost === 0) && beside.every(({ lost }) => lost === 0);
  return [
    name,
    outcomes.every(({ lost }) => lost === 0) ? seconds(median(outcomes.map(({ ms }) => ms))) : "never",
    isComplete ? median(outcomes.map(({ ms }, round) => ms / (beside[round]?.ms ?? Number.NaN))).toFixed(2) : "",
    worst(({ lost }) => lost),
    worst(({ twice }) => twice),
    worst(({ disordered }) => disordered),
  ];
}

let asked = 0;

/** Somebody in ten rooms with the same answerer. */
class Crowd {
  readonly name: string;
  readonly #person: Person;
  readonly #answerer: Answerer;
  readonly #rooms: readonly string[];

  private constructor(person: Person, answerer: Answerer, rooms: readonly string[]) {
    this.name = answerer.name;
    this.#person = person;
    this.#answerer = answerer;
    this.#rooms = rooms;
  }

  static async gather(person: Person, answerer: Answerer): Promise<Crowd> {
    const rooms: string[] = [];
    while (rooms.length < roomCount) rooms.push(await person.roomWith(answerer.userId));
    return new Crowd(person, answerer, rooms);
  }

  async ask({ kills = false } = {}): Promise<Outcome> {
    const questions = new Map(
      this.#rooms.map((room) => [room, Array.from({ length: messagesPerRoom }, () => `question ${++asked}`)]),
    );
    const expected = [...questions.values()].flat().map(answerTo);
    let start = performance.now();
    const saying = [...questions].flatMap(([room, bodies]) => bodies.map((body) => this.#person.say(room, body)));
    if (kills) {
      await this.#answered(expected, killAfter);
      start = performance.now();
      await this.#answerer.kill();
      await this.#answerer.start({ isReady: false });
    }
    await Promise.all(saying);
    const last = await this.#answered(expected, expected.length);
    const rooms = await Promise.all([...questions].map(([room, bodies]) => this.#judge(room, bodies)));
    const sum = (count: (room: (typeof rooms)[number]) => number) => rooms.reduce((all, room) => all + count(room), 0);
    return {
      ms: last - start,
      lost: sum(({ lost }) => lost),
      twice: sum(({ twice }) => twice),
      disordered: sum(({ isDisordered }) => Number(isDisordered)),
    };
  }

  /** Waits until this many answers were seen, or none has come for long. @returns when the last of them was */
  async #answered(expected: readonly string[], enough: number): Promise<number> {
    let [count, since] = [0, performance.now()];
    for (;;) {
      const heard = this.#person.heard(this.#answerer.userId, expected);
      if (heard.count > count) [count, since] = [heard.count, performance.now()];
      if (count >= enough || performance.now() - since > silenceMs) return heard.last;
      await sleep(5);
    }
  }

  async #judge(room: string, bodies: readonly string[]) {
    const said = await this.#person.messages(room);
    const order = said.filter(({ body }) => bodies.includes(body)).map(({ body }) => answerTo(body));
    const answers = said
      .filter(({ sender, body }) => sender === this.#answerer.userId && order.includes(body))
      .map(({ body }) => body);
    const first = [...new Set(answers)];
    return {
      lost: order.length - first.length,
      twice: answers.length - first.length,
      isDisordered: first.join() !== order.filter((body) => first.includes(body)).join(),
    };
  }
}
