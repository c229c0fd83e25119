import { setTimeout as sleep } from "node:timers/promises";
import { answerTo } from "../support/answers.ts";
import { Setting } from "./setting.ts";
import type { Table } from "./table.ts";
import { cpuMs, residentMb } from "./usage.ts";

const messages = 50;
const settleMs = 5_000;
/** Garbage of the last messages is collected about three times in the first 15 s. */
const restMs = 30_000;
const idleMs = 20_000;

/** Memory and idle CPU of the bridge's process, after it has answered some messages. */
export async function footprint(postgresUrl: string | undefined): Promise<Table[]> {
  const rows: string[][] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])])
    for (const agents of [1, 20]) {
      const goal = url === undefined && agents === 20 ? "≤ 270 MB" : "";
      const setting = await Setting.set(url, { agents });
      try {
        rows.push([setting.ours.name, String(agents), ...(await measure(setting)), goal]);
      } finally {
        await setting.strike();
      }
    }
  return [
    {
      title: "Footprint of the bridge's process",
      columns: ["", "agents", "memory at start", `after ${messages} messages`, "idle CPU", "goal"],
      rows,
      note: `idle CPU, of one core: from ${restMs / 1000} s to ${(restMs + idleMs) / 1000} s after the last message, when its garbage has been collected; the later memory is that of the end`,
    },
  ];
}

async function measure(setting: Setting): Promise<string[]> {
  const { bridge, ours } = setting;
  await bridge.start();
  await sleep(settleMs);
  const atStart = await residentMb(bridge.pid);
  const ann = await setting.person("ann");
  const room = await ann.roomWith(ours.userId);
  for (let n = 1; n <= messages; n++) {
    const text = `message ${n}`;
    await ann.say(room, text);
    await ann.hears(ours.userId, answerTo(text));
  }
  await sleep(restMs);
  const [before, start] = [await cpuMs(bridge.pid), performance.now()];
  await sleep(idleMs);
  const idle = ((await cpuMs(bridge.pid)) - before) / (performance.now() - start);
  const after = await residentMb(bridge.pid);
  return [`${atStart.toFixed(0)} MB`, `${after.toFixed(0)} MB`, `${(idle * 100).toFixed(2)} %`];
}
