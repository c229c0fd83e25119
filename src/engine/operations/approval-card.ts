import { fenced, messageContent } from "../../adapters/matrix/markdown.ts";
import { asEdit, type ThreadPlace } from "../../adapters/matrix/relation.ts";
import { digest, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { visible } from "../../base/lmml/visible.ts";
import { beginning } from "../../base/prompt/measure.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { endsOf, shownText } from "./shown-text.ts";

/** A longer input is not shown, and what was not shown in full can only be denied. */
export const inputMost = 8_000;
const inputLinesMost = 200;
/** Lines in which an input that is too long shows how its values begin and end. */
const excerptLines = 30;
const namesMost = 10;
const lineMost = 300;
/** A reason is ours, and may name several things that stand against the call. */
const reasonMost = 1_500;

export const approveSign = "✅";
export const denySign = "❌";

/** The message in which people are asked. */
export interface Card {
  readonly key: string;
  readonly roomId: RoomId;
  /** The agent; where it is not in the room, the bridge bot. */
  readonly sender: UserId;
}

/** Question on a card. */
export interface CardQuestion {
  /** Number of the operation. */
  readonly id: number;
  readonly tool: string;
  readonly kind: string;
  readonly summary: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Those of the agent's sub-agents who want it, from the outermost: `planner/clerk`. */
  readonly subAgent?: string | undefined;
  /** Why it was not simply carried out. */
  readonly reason: string;
  /** Untrusted texts that the agent had read. */
  readonly taint: readonly string[];
  /** Files that it takes elsewhere. */
  readonly carried?: readonly Stamp[];
  /** Those who may decide; see `approversIn`. */
  readonly approvers: readonly UserId[];
  /** Of them, those who are notified. */
  readonly notified: readonly UserId[];
  readonly expiresAt: Date;
  /** Where the agent asks from, if the card is in another room. */
  readonly from: string | undefined;
  readonly thread: ThreadPlace | undefined;
}

/** Outcome that a card tells. */
export interface CardOutcome {
  readonly id: number;
  readonly tool: string;
  readonly summary: string;
  readonly state:
    | "approved"
    | "denied"
    | "expired"
    | "withdrawn"
    | "done"
    | "failed"
    | "refused"
    | "interrupted"
    | "unknown";
  /** Who decided. */
  readonly by?: UserId | null | undefined;
  /** Words of the person who decided, the error, or who stopped it. */
  readonly because?: string | null | undefined;
}

const isLong = (value: unknown): value is string =>
  typeof value === "string" && value.includes("\n") && !value.includes("\r");

const valuesOf = (input: CardQuestion["input"]) => Object.entries(input).filter(([, value]) => value !== undefined);

/**
 * The input as people are shown it, whole: a line of JSON for each value, a block of its own for a text of several
 * lines. Undefined where it is too long to be shown.
 */
export function shownInput(input: CardQuestion["input"]): string | undefined {
  const entries = valuesOf(input);
  const lines = entries
    .filter(([, value]) => !isLong(value))
    .map(([name, value]) => shownText(`${name}: ${JSON.stringify(value)}`));
  const texts = entries.flatMap(([name, value]) =>
    isLong(value) ? [`\`${name}\`:\n\n${fenced(shownText(value))}`] : [],
  );
  const blocks = [...(lines.length > 0 ? [fenced(lines.join("\n"))] : []), ...texts];
  const shown = blocks.length > 0 ? blocks.join("\n\n") : "It has no input.";
  return shown.length <= inputMost && shown.split("\n").length <= inputLinesMost ? shown : undefined;
}

/** Beginning and end of each value of an input that is too long to be shown. */
function excerptOf(input: CardQuestion["input"]): string {
  const entries = valuesOf(input);
  const each = Math.max(2, Math.floor(excerptLines / entries.length));
  const shown = entries.map(([name, value]) =>
    endsOf(shownText(`${name}: ${isLong(value) ? `\n${value}` : JSON.stringify(value)}`), each),
  );
  return fenced(endsOf(shown.join("\n"), excerptLines));
}

/** The card, and the signs below it, as rows of the outbox. The agent's own room is told by it; see `shownInput`. */
export function approvalCard({ key, roomId, sender }: Card, question: CardQuestion): OutboxDraft[] {
  const { id, tool, kind, summary, subAgent, reason, taint, approvers, notified, expiresAt, from, thread } = question;
  const { carried = [] } = question;
  const input = shownInput(question.input);
  const people = shortened(approvers, approvers.length);
  const unnamed = taint.filter((name) => !reason.includes(name));
  const read = shortened(
    unnamed.map((name) => quoted(name)),
    unnamed.length,
  );
  const markdown = [
    `**Operation ${id} waits for approval:** ${quoted(tool)} (${kind})`,
    quoted(summary),
    ...(from === undefined ? [] : [`Asked from: ${quoted(from)}`]),
    ...(subAgent === undefined ? [] : [`Asked by the sub-agent ${quoted(subAgent)}`]),
    `Why it is asked: ${plain(reason)}.`,
    ...(unnamed.length === 0 ? [] : [`Read before, and not trusted: ${read}.`]),
    ...(carried.length === 0 ? [] : [`Of files as they are now, and no others: ${shownFiles(carried)}.`]),
    input ?? "**The input is too long to be shown, so that this can only be denied.** It begins and ends so:",
    ...(input === undefined ? [excerptOf(question.input)] : []),
    input === undefined
      ? `${denySign} denies it; so does an answer to this message, with your reason, or \`!deny ${id} why\`.`
      : `${approveSign} lets it be carried out, ${denySign} denies it; an answer to this message denies it with your reason. Or: \`!approve ${id}\`, \`!deny ${id} why\`.`,
    `May decide: ${people}. Until ${timeOf(expiresAt)}.`,
  ].join("\n\n");
  const content = { ...messageContent({ markdown, thread, members: notified, key }), ...marked(id) };
  const card: OutboxDraft = { key, roomId, sender, kind: "message", content };
  const signs = input === undefined ? [denySign] : [approveSign, denySign];
  return [card, ...signs.map((sign) => reaction(card, sign, id))];
}

/** The card says from now on what became of the question. */
export function outcomeOfCard({ key: about, roomId, sender }: Card, outcome: CardOutcome): OutboxDraft {
  const key = digest("card", about, outcome.state);
  const { "org.clevernet.key": _, ...content } = messageContent({ markdown: outcomeText(outcome), notice: true, key });
  return {
    key,
    roomId,
    sender,
    kind: "message",
    about,
    content: {
      ...asEdit(content),
      "m.new_content": { ...content, "org.clevernet.key": about },
      "org.clevernet.key": key,
    },
  };
}

/** In Markdown, for people. */
function outcomeText({ id, tool, summary, state, by, because }: CardOutcome): string {
  const whom = by ? ` by ${by}` : "";
  const why = because ? `: ${quoted(because)}` : "";
  const said = {
    approved: `✅ was approved${whom}, and is being carried out`,
    denied: `❌ was denied${whom}${why}`,
    expired: "⌛ expired: nobody decided in time, and it was not carried out",
    withdrawn: `↩️ was withdrawn, and was not carried out${why}`,
    done: `✅ was approved${whom}, and has been carried out`,
    failed: `⚠️ was approved${whom}, and failed${why}`,
    refused: `⛔ was approved${whom}, and was refused all the same${why}`,
    interrupted: `🛑 was interrupted${why}`,
    unknown: `❓ was approved${whom}; whether it was carried out is unknown, since the bridge was interrupted`,
  }[state];
  const [sign, ...words] = said.split(" ");
  return `${sign} **Operation ${id}** ${words.join(" ")}.\n\n${quoted(tool)}: ${quoted(summary)}`;
}

/** By which programs know a card and its signs; they address no agent. */
const marked = (id: number) => ({ "org.clevernet.operation": id });
export const isCard = (content: Readonly<Record<string, unknown>>): boolean => "org.clevernet.operation" in content;

const reaction = ({ key: about, roomId, sender }: OutboxDraft, sign: string, id: number): OutboxDraft => {
  const key = digest("sign", about, sign);
  const relation = { "m.relates_to": { rel_type: "m.annotation", key: sign } };
  const content = { ...relation, "org.clevernet.key": key, ...marked(id) };
  return { key, roomId, sender, kind: "reaction", about, content };
};

const shortened = (names: readonly string[], count: number): string =>
  names.slice(0, namesMost).join(", ") + (count > namesMost ? ` and ${count - namesMost} more` : "");

/** Names each file with its version; of many the first, and a digest of all. */
const shownFiles = (files: readonly Stamp[]): string => {
  const names = files.slice(0, namesMost).map(({ path, version }) => `${quoted(path)} (version ${version})`);
  const all = `; all together ${digest(...files.map(({ mark }) => mark)).slice(0, 12)}`;
  return shortened(names, files.length) + (files.length > namesMost ? all : "");
};

/** Text from elsewhere on one line, as code: nothing in it is a link, a mention or markup. */
function quoted(text: string, most = lineMost): string {
  const line = clipped(visible(text).replaceAll(/\s+/g, " ").trim(), most);
  const fence = "`".repeat(Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return /^`|`$|^$/.test(line) ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}

/** A sentence of ours, unless it holds what could be markup. */
const plain = (text: string): string =>
  /^[\p{L}\p{N} ,.;:'’@/()!#$+=_-]*$/u.test(text) && !text.includes("//")
    ? clipped(text, reasonMost)
    : quoted(text, reasonMost);

/** Cut in the middle: the end of a text says as much as its beginning. */
function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = text.slice(-Math.floor(most / 3)).replace(/^[\uDC00-\uDFFF]/, "");
  return `${beginning(text, most - end.length - 1)}…${end}`;
}

const timeOf = (at: Date): string => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
