import { answerTo } from "../support/answers.ts";
import { Setting } from "./setting.ts";
import { median, seconds, type Table } from "./table.ts";

const rounds = 5;

/** The bridge is stopped, then started; a message is sent in the moment of the start. */
export async function restart(postgresUrl: string | undefined): Promise<Table[]> {
  const rows: string[][] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])]) {
    const setting = await Setting.set(url);
    try {
      const times = await measure(setting);
      rows.push([setting.ours.name, seconds(median(times)), seconds(Math.max(...times))]);
    } finally {
      await setting.strike();
    }
  }
  const title = "Restart: start of the process → answer seen to a message sent in that moment";
  return [{ title, columns: ["who answers", "median", "worst"], rows }];
}

async function measure(setting: Setting): Promise<number[]> {
  const { bridge, ours } = setting;
  await bridge.start();
  const ann = await setting.person("ann");
  const room = await ann.roomWith(ours.userId);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await bridge.stop();
    const text = `message ${round}`;
    const start = performance.now();
    const [seen] = await Promise.all([ann.hears(ours.userId, answerTo(text)), bridge.start(), ann.say(room, text)]);
    times.push(seen - start);
  }
  return times;
}
