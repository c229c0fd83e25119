import { fence, messageContent } from "../../adapters/matrix/markdown.ts";
import { asEdit, type ThreadPlace } from "../../adapters/matrix/relation.ts";
import { digest, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { untilText } from "../../base/prompt/time.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { clipMiddle, endsOf, quote, showText } from "./shown-text.ts";
import type { Wording } from "./wording.ts";

/** A longer input is not shown, and what was not shown in full can only be denied. */
export const inputMost = 8_000;
const inputLinesMost = 200;
/** Lines in which an input that is too long shows how its values begin and end. */
const excerptLines = 30;
const namesMost = 10;
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
  readonly wording: Wording;
  readonly input: Readonly<Record<string, unknown>>;
  /** Sub-agents of the agent that want it, from the outermost: `planner/clerk`. */
  readonly subAgent?: string | undefined;
  /** Why it was not simply carried out. */
  readonly reason: string;
  /** Untrusted texts that the agent had read. */
  readonly taint: readonly string[];
  /** Files that it takes elsewhere. */
  readonly carried?: readonly Stamp[];
  /** People who may decide; see `approversIn`. */
  readonly approvers: readonly UserId[];
  /** Of them, those who are notified. */
  readonly notified: readonly UserId[];
  readonly expiresAt: Date;
  readonly now: Date;
  /** In which the times are told. */
  readonly timeZone: string;
  /** Room from which the agent asks, if the card is in another. */
  readonly from: string | undefined;
  /** That room is encrypted: the card says nothing of the input, nor of files. */
  readonly isSealed?: boolean;
  readonly thread: ThreadPlace | undefined;
}

/** Outcome that a card tells. */
export interface CardOutcome {
  readonly id: number;
  readonly wording: Wording;
  readonly state: "denied" | "expired" | "withdrawn" | "done" | "failed" | "refused" | "interrupted" | "unknown";
  /** User who decided. */
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
export function showInput(input: CardQuestion["input"]): string | undefined {
  const entries = valuesOf(input);
  const lines = entries
    .filter(([, value]) => !isLong(value))
    .map(([name, value]) => showText(`${name}: ${JSON.stringify(value)}`));
  const texts = entries.flatMap(([name, value]) =>
    isLong(value) ? [`\`${name}\`:\n\n${fence(showText(value))}`] : [],
  );
  const blocks = [...(lines.length > 0 ? [fence(lines.join("\n"))] : []), ...texts];
  const shown = blocks.join("\n\n");
  return shown.length <= inputMost && shown.split("\n").length <= inputLinesMost ? shown : undefined;
}

/** Beginning and end of each value of an input that is too long to be shown. */
function excerptOf(input: CardQuestion["input"]): string {
  const entries = valuesOf(input);
  const each = Math.max(2, Math.floor(excerptLines / entries.length));
  const shown = entries.map(([name, value]) =>
    endsOf(showText(`${name}: ${isLong(value) ? `\n${value}` : JSON.stringify(value)}`), each),
  );
  return fence(endsOf(shown.join("\n"), excerptLines));
}

/** Those parts of the input that the question does not say already; see `showInput`. */
function restOf({ input, wording }: Pick<CardQuestion, "input" | "wording">): string | undefined {
  if (showInput(input) === undefined) return excerptOf(input);
  return showInput(Object.fromEntries(Object.entries(input).filter(([field]) => !wording.said.has(field))));
}

/** The card, and the signs below it, as rows of the outbox. The agent's own room is told by it; see `showInput`. */
export function approvalCard({ key, roomId, sender }: Card, question: CardQuestion): OutboxDraft[] {
  const { id, wording, subAgent, reason, taint, carried = [], approvers, notified, from, isSealed, thread } = question;
  const isWhole = showInput(question.input) !== undefined;
  const input = isSealed ? undefined : restOf(question);
  const people = shortened(approvers, approvers.length);
  const unnamed = taint.filter((name) => !reason.includes(name));
  const read = shortened(
    unnamed.map((name) => quote(name)),
    unnamed.length,
  );
  const until = untilText(question.expiresAt, question.now, question.timeZone);
  const markdown = [
    `**${wording.text}?**`,
    ...(from === undefined ? [] : [`Asked from: ${from}`]),
    ...(isSealed
      ? [`That room is encrypted: what it is about is not told here. \`!operation ${id}\` shows it there.`]
      : []),
    ...(subAgent === undefined ? [] : [`Asked by the sub-agent ${quote(subAgent)}`]),
    `I ask because ${toPlain(reason)}.`,
    ...(unnamed.length === 0 ? [] : [`Read before, and not trusted: ${read}.`]),
    ...(carried.length === 0 ? [] : [`Of files as they are now, and no others: ${shownFiles(carried)}.`]),
    ...(isWhole
      ? []
      : [
          `**The input is too long to be shown, so that this can only be denied.**${isSealed ? "" : " It begins and ends so:"}`,
        ]),
    ...(input === undefined || input === "" ? [] : [input]),
    isWhole
      ? `${approveSign} yes, ${denySign} no; an answer to this message is a no with your reason. Or write \`!approve ${id}\`, \`!deny ${id} why\`.`
      : `${denySign} denies it; so does an answer to this message, with your reason, or \`!deny ${id} why\`.`,
    `May decide: ${people}, until ${until}.`,
  ].join("\n\n");
  const content = { ...messageContent({ markdown, thread, members: notified, key }), ...cardMark(id) };
  const card: OutboxDraft = { key, roomId, sender, kind: "message", content };
  const signs = isWhole ? [approveSign, denySign] : [denySign];
  return [card, ...signs.map((sign) => reaction(card, sign, id))];
}

/** The card says from now on what became of the question. */
export const outcomeOfCard = (card: Card, outcome: CardOutcome): OutboxDraft =>
  editOfQuestion(card, { key: digest("card", card.key, outcome.state), markdown: outcomeText(outcome) });

/** Edit by which a question says what became of it. */
export function editOfQuestion(
  { key: about, roomId, sender }: Pick<OutboxDraft, "key" | "roomId" | "sender">,
  { key, markdown }: { readonly key: string; readonly markdown: string },
): OutboxDraft {
  const { "org.clevernet.key": _, ...content } = messageContent({ markdown, isNotice: true, key });
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
function outcomeText({ id, wording, state, by, because }: CardOutcome): string {
  const whom = by ? ` by ${by}` : "";
  const why = because ? `: ${quote(because)}` : "";
  const said = {
    denied: `❌ Denied${whom}${why}`,
    expired: "⌛ Expired: nobody decided in time, and it was not carried out",
    withdrawn: `↩️ Withdrawn, and not carried out${why}`,
    done: `✅ Approved${whom}, and done`,
    failed: `⚠️ Approved${whom}, and failed${why}`,
    refused: `⛔ Approved${whom}, and refused all the same${why}`,
    interrupted: `🛑 Interrupted${why}`,
    unknown: `❓ Approved${whom}; whether it was done is unknown, since the bridge was interrupted`,
  }[state];
  return `**${wording.text}?** (operation ${id})\n\n${said}.`;
}

/** By which programs know a card and its signs; they address no agent. */
const cardMark = (id: number) => ({ "org.clevernet.operation": id });
export const isCard = (content: Readonly<Record<string, unknown>>): boolean => "org.clevernet.operation" in content;

const reaction = ({ key: about, roomId, sender }: OutboxDraft, sign: string, id: number): OutboxDraft => {
  const key = digest("sign", about, sign);
  const relation = { "m.relates_to": { rel_type: "m.annotation", key: sign } };
  const content = { ...relation, "org.clevernet.key": key, ...cardMark(id) };
  return { key, roomId, sender, kind: "reaction", about, content };
};

const shortened = (names: readonly string[], count: number): string =>
  names.slice(0, namesMost).join(", ") + (count > namesMost ? ` and ${count - namesMost} more` : "");

/** Names each file with its version; of many the first, and a digest of all. */
const shownFiles = (files: readonly Stamp[]): string => {
  const names = files.slice(0, namesMost).map(({ path, version }) => `${quote(path)} (version ${version})`);
  const all = `; all together ${digest(...files.map(({ mark }) => mark)).slice(0, 12)}`;
  return shortened(names, files.length) + (files.length > namesMost ? all : "");
};

/** A sentence of ours, unless it holds what could be markup. */
const toPlain = (text: string): string =>
  /^[\p{L}\p{N} ,.;:'’@/()!#$+=_-]*$/u.test(text) && !text.includes("//")
    ? clipMiddle(text, reasonMost)
    : quote(text, reasonMost);
