import { answerTo } from "../support/answers.ts";
import type { Person } from "./person.ts";
import type { Setting } from "./setting.ts";
import { median, ms, type Table } from "./table.ts";

/** Pairs of a room with a history and one without, which are measured in turn. */
const pairs = 2;
const rounds = 10;
/** Answers in a room before the first that is measured: the middle one of those is the 10th, or the 200th. */
const before = { short: 4, long: 194 };

/** Answers in rooms in which much was said before, beside those in rooms in which little was said. */
export async function historyLatency(setting: Setting, ann: Person): Promise<Table> {
  const { ours } = setting;
  let said = 0;
  const ask = async (room: string): Promise<number> => {
    const text = `history ${++said}`;
    const start = performance.now();
    const seen = ann.hears(ours.userId, answerTo(text), 60_000);
    await ann.say(room, text);
    return (await seen) - start;
  };
  const fill = async (answers: number): Promise<string> => {
    const room = await ann.roomWith(ours.userId);
    for (let n = 0; n < answers; n++) await ask(room);
    return room;
  };
  const rooms = (answers: number): Promise<string[]> => Promise.all(Array.from({ length: pairs }, () => fill(answers)));
  const [long, short] = [await rooms(before.long), await rooms(before.short)];
  const times = { long: [] as number[], short: [] as number[] };
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++)
    for (let pair = 0; pair < pairs; pair++) {
      const [early, late] = [await ask(short[pair] ?? ""), await ask(long[pair] ?? "")];
      times.short.push(early);
      times.long.push(late);
      ratios.push(late / early);
    }
  const nth = (answers: number): string => `answer ${answers + 1} to ${answers + rounds + 1}`;
  return {
    title: `Latency of ${ours.name}: the 200th answer in a room beside the 10th`,
    columns: ["", "p50", "beside the 10th", "goal"],
    rows: [
      [nth(before.short), ms(median(times.short)), "1.00", ""],
      [nth(before.long), ms(median(times.long)), median(ratios).toFixed(2), "≤ 1.10"],
    ],
    note: `${pairs} rooms of each kind, asked in turn; the model that answers reads the whole prompt, too`,
  };
}
