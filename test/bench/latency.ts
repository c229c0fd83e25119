import { answerTo } from "../support/answers.ts";
import { historyLatency } from "./history-latency.ts";
import { inviteLatency } from "./invite-latency.ts";
import type { Person } from "./person.ts";
import { type Answerer, Setting } from "./setting.ts";
import { median, ms, percentile, type Table } from "./table.ts";
import { cpuMs } from "./usage.ts";

const rounds = 5;
const messagesPerRound = 30;
const goals: Readonly<Record<string, string>> = {
  "Clevernet, embedded": "≤ 1.25, ≤ 25 ms",
  "Clevernet, postgres": "≤ 1.25, ≤ 18 ms",
};

/** One way a message can take to whoever waits for it. */
interface Way {
  readonly name: string;
  /** Says the text and resolves with the milliseconds until it, or the answer to it, was seen. */
  travel(text: string): Promise<number>;
  /** Who works for it. */
  readonly answerer?: Answerer;
  readonly times: number[];
  /** Medians of the rounds. */
  readonly medians: number[];
  readonly cpu: number[];
}

/** One message after the other: until the model is asked, and until the answer is seen. */
export async function latency(postgresUrl: string | undefined): Promise<Table[]> {
  const tables: Table[] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])]) {
    const setting = await Setting.set(url);
    try {
      tables.push(...(await measure(setting)));
    } finally {
      await setting.strike();
    }
  }
  return tables;
}

async function measure(setting: Setting): Promise<Table[]> {
  await Promise.all([setting.bridge.start(), setting.bot.start()]);
  const [ann, ben] = await Promise.all([setting.person("ann"), setting.person("ben")]);
  const ways = [await hop(ann, ben), await question(ann, setting.bot), await question(ann, setting.ours)];
  let said = 0;
  for (let warm = 0; warm < 20; warm++) for (const { travel } of ways) await travel(`warm ${++said}`);
  for (let round = 0; round < rounds; round++)
    for (const way of ways) await travelOften(way, () => `message ${++said}`);
  const more = [await inviteLatency(setting, ann), await historyLatency(setting, ann)];
  await setting.bridge.stop();
  return [answers(setting, ways), await stored(setting), ...more];
}

async function hop(ann: Person, ben: Person): Promise<Way> {
  const body = { preset: "public_chat" };
  const room = String((await ann.api("POST", "v3/createRoom", { body })).room_id);
  await ben.join(room);
  const travel = async (text: string) => {
    const start = performance.now();
    const seen = ben.hears(ann.id, text);
    await ann.say(room, text);
    return (await seen) - start;
  };
  return { name: "a user's message", travel, times: [], medians: [], cpu: [] };
}

async function question(ann: Person, answerer: Answerer): Promise<Way> {
  const room = await ann.roomWith(answerer.userId);
  const travel = async (text: string) => {
    const start = performance.now();
    const seen = ann.hears(answerer.userId, answerTo(text));
    await ann.say(room, text);
    return (await seen) - start;
  };
  return { name: `${answerer.name}'s answer`, travel, answerer, times: [], medians: [], cpu: [] };
}

async function travelOften({ travel, answerer, times, medians, cpu }: Way, text: () => string): Promise<void> {
  const before = answerer ? await cpuMs(answerer.pid) : 0;
  const measured: number[] = [];
  for (let n = 0; n < messagesPerRound; n++) measured.push(await travel(text()));
  times.push(...measured);
  medians.push(median(measured));
  if (answerer) cpu.push(((await cpuMs(answerer.pid)) - before) / messagesPerRound);
}

function answers({ ours }: Setting, ways: readonly Way[]): Table {
  const bot = ways.find(({ name }) => name.startsWith("minimal"))?.medians ?? [];
  return {
    title: `Latency of ${ours.name}: sent → seen by /sync, one message at a time, the model answers at once`,
    columns: ["what is seen", "p50", "p95", "beside the bot", "CPU per message", "goals"],
    rows: ways.map(({ name, answerer, times, medians, cpu }) => [
      name,
      ms(percentile(times, 0.5)),
      ms(percentile(times, 0.95)),
      median(medians.map((value, round) => value / (bot[round] ?? Number.NaN))).toFixed(2),
      cpu.length > 0 ? ms(median(cpu)) : "",
      answerer === ours ? (goals[ours.name] ?? "") : "",
    ]),
    note: "goals: beside the bot, and CPU per message where that bot takes 5 ms",
  };
}

async function stored(setting: Setting): Promise<Table> {
  const events = await setting.query<{ body: string; at: number }>(
    `select content->>'body' as body, extract(epoch from received_at)::float8 * 1000 as at from events
     where type = 'm.room.message' and content->>'body' like 'message %'`,
  );
  const times = events.flatMap(({ body, at }) => (setting.asked.get(body) ?? Number.NaN) - at).filter(Number.isFinite);
  return {
    title: `Latency of ${setting.ours.name}: event stored → model asked`,
    columns: ["messages", "p50", "p95"],
    rows: [[String(times.length), ms(percentile(times, 0.5)), ms(percentile(times, 0.95))]],
  };
}
