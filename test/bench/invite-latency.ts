import type { Person } from "./person.ts";
import type { Setting } from "./setting.ts";
import { median, ms, type Table } from "./table.ts";

const rounds = 15;
const warm = 3;

/** Invitations, until the invited one is seen to join. */
export async function inviteLatency({ ours, bot }: Setting, ann: Person): Promise<Table> {
  const invite = async (userId: string): Promise<number> => {
    const room = await ann.room();
    const start = performance.now();
    const joined = ann.joins(room, userId);
    await ann.invite(room, userId);
    return (await joined) - start;
  };
  const times = { bot: [] as number[], ours: [] as number[] };
  const ratios: number[] = [];
  for (let round = -warm; round < rounds; round++) {
    const [theirs, own] = [await invite(bot.userId), await invite(ours.userId)];
    if (round < 0) continue;
    times.bot.push(theirs);
    times.ours.push(own);
    ratios.push(own / theirs);
  }
  return {
    title: `Latency of ${ours.name}: invited → seen to have joined`,
    columns: ["who", "p50", "beside the bot", "goal"],
    rows: [
      [bot.name, ms(median(times.bot)), "1.00", ""],
      [ours.name, ms(median(times.ours)), median(ratios).toFixed(2), "≤ 1.50"],
    ],
    note: "each in a room of its own; the bot joins and does nothing more",
  };
}
