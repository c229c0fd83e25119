import type { LayoutName } from "../../src/base/prompt/layout.ts";
import { agentFields } from "../../src/domain/agents/settings.ts";
import { type ModelRequest, type Step, say, toolName } from "../support/scripted-model.ts";
import { commonStart } from "../support/talk.ts";
import { Setting } from "./setting.ts";
import type { Table } from "./table.ts";

const wakes = 30;
const rooms = 3;

const words =
  "we could look at the plan for the summer, ask those who were there last year, and write down what it costs; ";

/** One model call, as the provider sees it. */
interface Call {
  readonly room: string;
  readonly sent: string;
}

/**
 * A person wakes an agent thirty times, in three rooms by turns; every third wake takes two steps. How much of each
 * call was the beginning of the conversation's previous call, and need not be read again by the provider.
 */
export async function prefix(postgresUrl: string | undefined): Promise<Table[]> {
  const rows: string[][] = [];
  for (const name of agentFields.layout.unwrap().options)
    for (const [length, most] of [
      ["short", 2],
      ["long", 4],
    ] as const)
      rows.push([`${name}, ${length} messages`, ...sharesOf(await converse(postgresUrl, name, most))]);
  return [
    {
      title: `Prefix: ${wakes} wakes in ${rooms} rooms, characters in common with the conversation's previous call`,
      columns: ["layout", "calls", "characters a call", "in common", "without first calls"],
      rows,
      note: "tools, then messages, as they are sent; budget of cacheable ≥ 85 %",
    },
  ];
}

/** `most`: how often the words stand in the longest question; in answers more often by a half. */
async function converse(postgresUrl: string | undefined, layout: LayoutName, most: number): Promise<Call[]> {
  const calls: Call[] = [];
  let [room, question] = ["", ""];
  const reply = (request: ModelRequest): Step => {
    const isSentAgain = calls.at(-1)?.sent.includes(question) ?? false;
    calls.push({ room, sent: sentIn(request) });
    if (question.startsWith("look") && !isSentAgain)
      return { call: toolName(request, "FS_Tree"), arguments: { path: "agents:/helper" } };
    return say(request, room, answerTo(question, most), { final: true });
  };
  const setting = await Setting.set(postgresUrl, { fields: { layout, wakeUpTimerSeconds: null }, reply });
  try {
    await setting.bridge.start();
    const ann = await setting.person("ann");
    const { userId } = setting.ours;
    const places: string[] = [];
    for (let n = 0; n < rooms; n++) places.push(await ann.roomWith(userId));
    for (let n = 0; n < wakes; n++) {
      room = places[n % rooms] ?? "";
      question = `${n % 3 === 2 ? "look" : "well"} ${n}: ${words.repeat(1 + (n % most))}`;
      await ann.say(room, question);
      await ann.hears(userId, answerTo(question, most));
    }
    return calls;
  } finally {
    await setting.strike();
  }
}

const answerTo = (question: string, most: number): string =>
  `As to ${question.slice(0, 7)}: ${words.repeat(1 + (question.length % (most * 1.5)))}`.trim();

const sentIn = ({ body }: ModelRequest): string =>
  [
    JSON.stringify(body.tools),
    ...body.messages.map(
      ({ role, content }) => `${role}\n${typeof content === "string" ? content : JSON.stringify(content)}`,
    ),
  ].join("\n");

function sharesOf(calls: readonly Call[]): string[] {
  const last = new Map<string, string>();
  let [all, later, same] = [0, 0, 0];
  for (const { room, sent } of calls) {
    const before = last.get(room);
    last.set(room, sent);
    all += sent.length;
    if (before === undefined) continue;
    later += sent.length;
    same += commonStart(before, sent);
  }
  const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;
  return [String(calls.length), (all / calls.length).toFixed(0), percent(same, all), percent(same, later)];
}
