import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import type { RoomId } from "../../src/base/lib/ids.ts";
import { agentFields } from "../../src/domain/agents/settings.ts";
import { type ModelRequest, say } from "../support/scripted-model.ts";
import { commonStart, type SentCall, Talk } from "../support/talk.ts";
import type { Table } from "./table.ts";

/** A day's messages: half of them questions. */
const messages = 500;
/** Exchanges of the talk that fills a context. */
const exchanges = 450;
const began = new Date("2026-01-01T06:00:00Z");
const secondsApart = 18;

type LayoutName = keyof typeof goals;
const goals = { cacheable: "≤ 3500, ≤ 60, ≥ 400", seed: "" };

/** List prices in dollars for a million tokens, of autumn 2025. */
const prices = {
  cheap: { name: "gpt-5-mini", input: 0.25, cached: 0.025, output: 2 },
  dear: { name: "claude-sonnet-4.5", input: 3.75, cached: 0.3, output: 15 },
};
type Price = (typeof prices)["cheap"];
const answerTokens = 40;

/** Tokens of what an agent is shown, beside a plain transcript of the same messages with the same tools. */
export async function economy(): Promise<Table[]> {
  const rows: string[][] = [];
  const days: string[][] = [];
  for (const name of agentFields.layout.unwrap().options) {
    const calls = await converse(name, exchanges);
    const fixed = fixedTokens(calls[0] as SentCall);
    const most = Math.max(...calls.map(shownExchanges));
    rows.push([name, String(fixed), perExchange(calls).toFixed(1), String(most), goals[name]]);
    const day = calls.slice(0, messages / 2);
    days.push([name, ...costsOf(day.map(({ texts }) => texts.join("\n")))]);
    if (name === "cacheable") days.push(["the same as a transcript", ...costsOf(day.map(transcriptOf))]);
  }
  rows.push([
    "plain transcript",
    "",
    countTokens(lineOf(123, "ann", "ping 1") + lineOf(123, "helper", "echo: 1")).toString(),
    "",
    "",
  ]);
  return [
    {
      title: `Economy: ${exchanges} exchanges of a person and an agent ("ping 1", "echo: 1"), tokens of o200k`,
      columns: ["layout", "fixed tokens", "an exchange", "exchanges shown", "goals"],
      rows,
      note: `fixed: system message without persona and prompt, and schemas of the core tools; 50,000 characters; an exchange every ${secondsApart} s`,
    },
    {
      title: `Economy: a day of ${messages} messages in one room`,
      columns: ["", "tokens a call", "in common", `${prices.cheap.name}`, `${prices.dear.name}`],
      rows: days,
      note: "in common with the call before, which is paid as read from the cache; goal: at most 1.6 times the transcript",
    },
  ];
}

async function converse(layout: LayoutName, count: number): Promise<SentCall[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-economy-"));
  const database = await openDatabase({ dir: join(dir, "data") });
  try {
    await migrate(database);
    let answer = "";
    const reply = (request: ModelRequest, roomId: RoomId) => say(request, roomId, answer, { final: true });
    const talk = await Talk.begin(database, { fields: { layout }, reply });
    const roomId = await talk.room();
    for (let n = 1; n <= count; n++) {
      answer = `echo: ${n}`;
      await talk.ask(roomId, `ping ${n}`, { at: timeOf(n) });
    }
    await talk.stop();
    return talk.calls;
  } finally {
    await database.close();
    await rm(dir, { recursive: true });
  }
}

const timeOf = (n: number): Date => new Date(began.getTime() + n * secondsApart * 1_000);

const fixedTokens = ({ texts: [tools = ""], system }: SentCall): number => {
  const own = system.replace(/<window windowId="persona"[\s\S]*?<\/window>/, "").replace(/^You are .*$/m, "");
  return countTokens(tools) + countTokens(own);
};

const shownExchanges = ({ user }: SentCall): number => user.match(/echo: \d+/g)?.length ?? 0;

/** Growth of the prompt with each exchange, where nothing is cut. */
const perExchange = (calls: readonly SentCall[]): number => {
  const [from, to] = [10, 30];
  const size = (n: number) => countTokens(calls[n]?.user ?? "");
  return (size(to) - size(from)) / (to - from);
};

const lineOf = (n: number, sender: string, text: string): string =>
  `[${timeOf(n).toISOString().slice(11, 16)}] ${sender}: ${text}\n`;

/** The messages that a call shows as a plain bot would write them, with the same tools. */
const transcriptOf = ({ texts: [tools = ""], user }: SentCall, n: number): string => {
  const shown = shownExchanges({ user } as SentCall);
  const lines = Array.from({ length: shown }, (_, index) => {
    const number = n + 1 - shown + index;
    return lineOf(number, "ann", `ping ${number}`) + lineOf(number, "helper", `echo: ${number}`);
  });
  return `${tools}\nYou are a helpful assistant.\n${lines.join("")}${lineOf(n + 1, "ann", `ping ${n + 1}`)}`;
};

function costsOf(sent: readonly string[]): string[] {
  let [all, same] = [0, 0];
  for (const [index, text] of sent.entries()) {
    all += countTokens(text);
    same += countTokens(text.slice(0, commonStart(sent[index - 1] ?? "", text)));
  }
  const dollars = ({ input, cached, output }: Price) =>
    ((all - same) * input + same * cached + sent.length * answerTokens * output) / 1e6;
  return [
    (all / sent.length).toFixed(0),
    `${((100 * same) / all).toFixed(1)} %`,
    ...[prices.cheap, prices.dear].map((price) => `$${dollars(price).toFixed(3)}`),
  ];
}
