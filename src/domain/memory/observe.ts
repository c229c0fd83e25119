import { readAttachment } from "../../adapters/matrix/attachment.ts";
import { readMessage } from "../../adapters/matrix/message.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { Memory } from "../tables/interactions.ts";
import { importanceOf } from "./importance.ts";

/** An event, as far as its words are concerned. */
type Observed = { readonly type: string; readonly content: Record<string, unknown> };

/**
 * Memory of an event of a room; undefined for one without words.
 * @param isOwn true for the message of an agent, which is what it did
 */
export function memoryOfEvent(event: Observed, isOwn = false): Memory | undefined {
  const text = wordsOf(event);
  if (text === undefined || text.trim() === "") return undefined;
  const kind = isOwn ? "action" : "observation";
  return { kind, tool: isOwn ? "SendMessage" : "message", text, importance: importanceOf({ kind, text }) };
}

/** Reads the words of a message, with the name of the file that it carries; of a topic or name, its text. */
function wordsOf(event: Observed): string | undefined {
  const { type, content } = event;
  const { name, topic } = content;
  if (type === "m.room.topic" && typeof topic === "string") return topic;
  if (type === "m.room.name" && typeof name === "string") return name;
  const message = readMessage(event);
  const attachment = readAttachment(event);
  return attachment?.isCaptioned ? `${message?.body} (${attachment.name})` : message?.body;
}

/** Tools whose calls are not remembered: what they say is an event, what they find or keep is remembered already. */
const silent = new Set([
  "SendMessage",
  "SemanticSearch",
  "recall_memory",
  "Remember",
  "set_fact",
  "update_status",
  "log_activity",
]);

/** Steps that carry out a call begin so, before the name of its tool. */
const callPrefix = "call ";

/** Longest text of a call or a result that is kept, in characters. */
const callMost = 2_000;

/**
 * Memory of an entry in the ephemeris; undefined for one that is none, such as a thought that was said.
 * @param suffix of the names by which the agent's model calls tools
 * @param step name of the step that wrote it: of a result, it names the tool
 */
export function memoryOfEntry(entry: Element, suffix: string, step: string | null): Memory | undefined {
  const toolOf = (name: unknown): string => String(name).replace(`_${suffix}`, "");
  const make = (kind: Memory["kind"], text: string, tool?: string): Memory | undefined =>
    text.trim() === "" || (tool !== undefined && silent.has(tool))
      ? undefined
      : {
          kind,
          tool,
          text: text.slice(0, callMost),
          importance: importanceOf({ kind, text, ...(tool !== undefined && { tool }) }),
        };
  switch (entry.name) {
    case "thought":
      return entry.attributes.sent === true ? undefined : make("thought", textIn(entry));
    case "functionCall": {
      const tool = toolOf(entry.attributes.function);
      return make("action", `${tool}(${parametersIn(entry)})`, tool);
    }
    case "functionResult":
      return make(
        "observation",
        textIn(entry),
        step?.startsWith(callPrefix) ? toolOf(step.slice(callPrefix.length)) : undefined,
      );
    case "systemEvent":
      return make("observation", textIn(entry));
    default:
      return undefined;
  }
}

/** All text in an element, without its markup. */
const textIn = ({ children }: Element): string =>
  typeof children === "string" ? children : children.map(textIn).filter(Boolean).join("\n");

const parametersIn = ({ children }: Element): string =>
  typeof children === "string"
    ? children
    : children.map((child) => `${child.attributes.name}: ${textIn(child)}`).join(", ");
