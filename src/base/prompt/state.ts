import { type Element, element } from "../lmml/element.ts";
import { escapeText } from "../lmml/escape.ts";
import { visible } from "../lmml/visible.ts";
import { manyParts, type Part, plainPart, textPart } from "./part.ts";
import type { StateFile, StateView } from "./types.ts";

/** The most of NOW.md in the layout `cacheable`, in characters. */
const statusMost = 2_000;
/** The most of LOG.md in the layout `cacheable`. */
const activityMost = 800;

/** Characters of the end of LOG.md that are read for a layout, in a context of `charsMax`. */
export const activityRead = (layout: "cacheable" | "seed", charsMax: number): number =>
  layout === "seed" ? charsMax : 10 * activityMost;

/** Text of NOW.md, as `update_status` writes it. */
export const statusText = (status: {
  readonly new_status_text?: unknown;
  readonly next_step?: unknown;
  readonly blockers?: unknown;
}): string => {
  const lines = [
    `# Current Goal: ${String(status.new_status_text).trim()}`,
    `- Next: ${String(status.next_step).trim()}`,
  ];
  const { blockers } = status;
  return `${[...lines, ...(blockers ? [`- Blockers: ${String(blockers).trim()}`] : [])].join("\n")}\n`;
};

/** True if one of the calls has written this text to NOW.md: it need not be told again. */
export const setsStatus = (entries: readonly Element[], text: string): boolean =>
  entries.some(
    ({ name, attributes, children }) =>
      name === "functionCall" &&
      String(attributes.function).startsWith("update_status_") &&
      typeof children === "object" &&
      statusText(Object.fromEntries(children.map((one) => [one.attributes.name, one.children]))) === text,
  );

/** A call of a tool, as the bridge notes it in LOG.md. */
const callLine = /^\[[^\]]*\] TOOL_USE \w+ #\d/;

/** Entries of LOG.md with all of their lines; the first may be the end of one that was cut. */
const entriesOf = (text: string): string[] => text.split(/\n(?=\[)/).filter((entry) => entry.trim() !== "");

/** The newest entries that have at most `max` characters together; of a longer one, its beginning. */
const newest = (entries: readonly string[], max: number): string[] => {
  const kept: string[] = [];
  let left = max;
  for (const entry of entries.toReversed()) {
    if (entry.length > left && kept.length > 0) break;
    kept.unshift(entry.length > left ? `${entry.slice(0, Math.max(0, left - 1))}…` : entry);
    left -= entry.length + 1;
  }
  return kept;
};

const fileElement = (name: string, { isTainted }: StateFile, text: string, isTruncated: boolean): Element =>
  element("workingFile", { name, truncated: isTruncated, tainted: isTainted }, text);

/**
 * Working files in the tail of the layout `cacheable`: NOW.md, and the newest of LOG.md. Calls that the bridge has noted
 * there are left out: they stand in the log with their results. Undefined where there is nothing to show.
 */
export const statusPart = ({ status }: StateView): Part<Element> | undefined => {
  if (!status || status.text.trim() === "") return undefined;
  const text = status.text.trimEnd();
  const part = textPart(text, 1, (shown, cut) => fileElement("NOW.md", status, shown, cut));
  return { wanted: Math.min(part.wanted, statusMost), cut: (max) => part.cut(Math.min(max, statusMost)) };
};

/** The file facts.json, where it is shown. */
const factsPart = ({ facts }: StateView): Part<Element> | undefined => {
  if (!facts || facts.text.trim() === "") return undefined;
  const isWhole = facts.text.length >= facts.chars;
  return textPart(facts.text.trimEnd(), 1, (shown, cut) => fileElement("facts.json", facts, shown, cut || !isWhole));
};

/** Working files that say how things stand; see `statusPart`. */
export const statusParts = (state: StateView): Part<Element[]> =>
  manyParts([statusPart(state), factsPart(state)].filter((part) => part !== undefined));

/** See `statusPart`. */
export const activityPart = ({ activity }: StateView): Part<Element> | undefined => {
  const noted = activity && entriesOf(activity.text).filter((entry) => !callLine.test(entry));
  if (!activity || !noted || noted.length === 0) return undefined;
  const shown = newest(noted, activityMost);
  const isWhole = shown.length === noted.length && activity.text.length >= activity.chars;
  return textPart(shown.join("\n").trimEnd(), 1, (text, cut) => fileElement("LOG.md", activity, text, cut || !isWhole));
};

/** Words in place of an empty NOW.md. */
const idle = "Status: Idle";
const olderMark = "[older entries: see LOG.md]";

/** The parts of the source document's block, in the layout `seed`. */
export const stateTexts = ({
  status,
  activity,
  facts,
}: StateView): { status: Part<string>; activity: Part<string> } => {
  const plain = (text: string) => escapeText(visible(text.trim()));
  const kept = facts ? `facts.json:\n${facts.text}` : "";
  const [now, log] = [plain(`${status?.text ?? ""}\n\n${kept}`), plain(activity?.text ?? "")];
  const entries = entriesOf(log);
  const isWhole = (activity?.text.length ?? 0) >= (activity?.chars ?? 0);
  const wanted = isWhole ? Math.max(0, log.length - olderMark.length) : log.length + 1;
  const cut = (max: number): string =>
    isWhole && max >= wanted ? log : [olderMark, ...(max > 1 ? newest(entries, max - 1) : [])].join("\n");
  return { status: plainPart(now === "" ? idle : now), activity: { wanted, cut } };
};

/** Characters that the parts want of a render. */
export const wantedState = ({
  status,
  activity,
}: {
  readonly status: Part<unknown> | undefined;
  readonly activity: Part<unknown> | undefined;
}) => ({
  status: status?.wanted ?? 0,
  activity: activity?.wanted ?? 0,
});

/** The source document's block: what the agent works on, and what it did last. */
export const stateBlock = (status: string, activity: string): string =>
  `=== CURRENT MENTAL STATE (Do not ignore) ===
You are currently working on:
${status}

=== RECENT ACTIVITY LOG ===
${activity}`;
