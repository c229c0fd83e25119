import { markerOf, openFence } from "../lib/fence.ts";
import type { RoomId } from "../lib/ids.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { eventTime } from "./time.ts";

/** `saidIn`: the room in which these words were said. */
export const thought = (at: Date, text: string, saidIn?: RoomId): Element =>
  element("thought", { timestamp: eventTime(at), roomId: saidIn, sent: saidIn !== undefined }, text);

/**
 * A call as the model made it: texts as they are, other values as JSON.
 * @param operation its number, by which people speak of it
 */
export const functionCall = (
  id: string,
  name: string,
  parameters: Readonly<Record<string, unknown>>,
  operation?: number,
): Element =>
  element(
    "functionCall",
    { id, operation, function: name },
    Object.entries(parameters).map(([parameter, value]) =>
      element("parameter", { name: parameter }, typeof value === "string" ? value : (JSON.stringify(value) ?? "")),
    ),
  );

/** `id` and `operation` are those of the call. */
export const functionResult = (id: string, result: Element | string, operation?: number): Element =>
  element("functionResult", { id, operation }, [element("result", {}, typeof result === "string" ? result : [result])]);

/** Counts the entries behind the last call: what the newest step has come to. */
export const newestResults = (entries: readonly Element[]): number =>
  entries.length - 1 - entries.findLastIndex(({ name }) => name === "functionCall");

/** Message of the bridge itself to the agent, such as that a turn has come to its limit. */
export const systemEvent = (at: Date, text: string): Element =>
  element("systemEvent", { timestamp: eventTime(at) }, text);

/** Markdown code that shows the text as it is: the fence is longer than any run of backticks in it. */
const fenced = (text: string): string => {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}xml\n${text}\n${fence}`;
};

/** The text with the end of the code block that it leaves open. */
const closeFence = (text: string): string => {
  const fence = markerOf(openFence(text));
  return fence === "" ? text : `${text}\n${fence}`;
};

/** Stands in the thoughts room for all that an agent has thought in a turn in an encrypted room. */
export const sealedThoughts: Element = element(
  "thought",
  {},
  "*worked in an encrypted room: its thoughts are not shown here*",
);

/** An entry of the ephemeris with the sub-agents whose it is, from the outermost: `planner/clerk`. */
interface ThoughtsRoomEntry {
  readonly entry: Element;
  readonly subAgent: string | null;
}

/**
 * Entries as Markdown for the thoughts room: thoughts as `NAME (MXID): text`, everything else as LMML code, below
 * that name where somebody else begins. Whatever a call or a result holds, it stays inside its code block.
 */
export const thoughtsRoomText = (displayName: string, userId: string, entries: readonly ThoughtsRoomEntry[]): string =>
  entries
    .flatMap(({ entry, subAgent }, index) => {
      const who = `${[displayName, ...(subAgent?.split("/") ?? [])].join(" / ")} (${userId}):`;
      if (entry.name === "thought" && typeof entry.children === "string") return closeFence(`${who} ${entry.children}`);
      const goesOn = (entries[index - 1]?.subAgent ?? null) === subAgent;
      return goesOn ? fenced(render(entry)) : [who, fenced(render(entry))];
    })
    .join("\n\n");
