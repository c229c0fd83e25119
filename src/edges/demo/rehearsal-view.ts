import { z } from "zod";
import type { Element } from "../../base/lmml/element.ts";
import { parse } from "../../base/lmml/parse.ts";
import { render } from "../../base/lmml/render.ts";
import { lastTextSpeaks } from "../../base/prompt/reminders.ts";
import { unquote } from "./rehearsal-tools.ts";

export interface NewMessage {
  readonly sender: string;
  readonly body: string;
  /** The thread in which it stands. */
  readonly threadId: string | undefined;
}

/** Piece of work for a sub-agent. */
export interface RehearsedErrand {
  readonly subAgent: string;
  readonly request: string;
}

/** Parts of the chat interface that a script must know. */
export interface RehearsalView {
  /** The room of the conversation; undefined in the home conversation. */
  readonly roomId: string | undefined;
  /** Messages of others in that room since, oldest first. */
  readonly newMessages: readonly NewMessage[];
  /** Calls of the running turn so far, oldest first. `result` is text or LMML. */
  readonly calls: readonly { readonly name: string; readonly result: string }[];
  /** The agent speaks by the last text of its turn, not by a tool. */
  readonly textSpeaks: boolean;
  /** Work that it is to do itself, in the place of a sub-agent. */
  readonly errand: RehearsedErrand | undefined;
  /** Work that a person has given it a command to delegate. */
  readonly toDelegate: RehearsedErrand | undefined;
}

/**
 * Wakes of the home conversation: what is new in the rooms is answered by the conversations there. What was scheduled in
 * a room names it.
 */
const wakesAtHome = new Set(["timer", "default mode", "schedule", "mailbox"]);

/** Wakes in which a turn of a room goes on, or one at home, where the first room shown is another one. */
const wakesAnywhere = new Set(["approval", "recovery"]);

const within = (parents: readonly Element[], name: string): Element[] =>
  parents.flatMap(({ children }) =>
    typeof children === "string" ? [] : children.filter((child) => child.name === name),
  );

const attribute = ({ attributes }: Element, name: string): string => String(attributes[name] ?? "");

/** Users of the agent's own server are named by their localparts. */
const fullName = (name: string, server = ""): string => (/[@:]/.test(name) ? name : `@${name}:${server}`);

const contentOf = ({ children }: Element): string =>
  typeof children === "string" ? children : children.map(render).join("\n");

/** One message of a request, as far as it is read. */
interface Message {
  readonly role: string;
  readonly content: string;
  readonly tool_calls?: unknown;
}

/** Elements that stand at the beginning of a line, in the user messages: inside texts no such tag can stand. */
export const readPrompt = (messages: readonly Message[]): Element[] =>
  messages
    .filter(({ role }) => role === "user")
    .flatMap(({ content }) => [
      ...content.matchAll(/^<(chatInterface|chatSystem|log|window)\b(?:[^>]*\/>|[\s\S]*?^<\/\1>)/gm),
    ])
    .map(([text]) => parse(text));

/** Reads what an agent is shown in a request; undefined where it holds no chat interface. */
export const readView = (messages: readonly Message[]): RehearsalView | undefined => {
  const roots = readPrompt(messages);
  const interfaces = roots.filter(({ name }) => name === "chatInterface");
  if (interfaces.length === 0) return undefined;
  const systems = [...roots.filter(({ name }) => name === "chatSystem"), ...within(interfaces, "chatSystem")];
  const [self, server] = ["loggedInAs", "systemId"].map((name) => (systems[0] ? attribute(systems[0], name) : ""));
  const rooms = within([...interfaces, ...within(interfaces, "chatSystem")], "room");
  const turn = within(
    rooms.filter((room) => attribute(room, "roomId") === "ephemeris"),
    "newEvents",
  );
  const [wake] = within(turn, "timestamp");
  const isScheduled = within(turn, "systemEvent").some((event) => attribute(event, "roomId") !== "");
  const reason = wake ? attribute(wake, "wakeReason") : "";
  const isElsewhere = rooms[0] !== undefined && ["closed", "unread"].some((name) => rooms[0]?.attributes[name]);
  const isAtHome = (wakesAtHome.has(reason) && !isScheduled) || (wakesAnywhere.has(reason) && isElsewhere);
  const [first] = isAtHome ? [] : rooms;
  const roomId = first && attribute(first, "roomId") !== "ephemeris" ? attribute(first, "roomId") : undefined;
  const own = rooms.filter((room) => attribute(room, "roomId") === roomId);
  const newMessages = within(within(own, "newEvents"), "message")
    .filter((message) => attribute(message, "sender") !== self && message.attributes.sent === undefined)
    .map((message) => ({
      sender: fullName(attribute(message, "sender"), server),
      body: contentOf(message),
      threadId: attribute(message, "threadId") || undefined,
    }));
  // Only a sub-agent has events in no room: the call by which it was delegated to, and its own calls.
  const work = within(interfaces, "newEvents");
  const [delegation] = within(work, "functionCall");
  return {
    roomId,
    newMessages,
    calls: [...(delegation ? shownCalls(work).slice(1) : shownCalls(turn)), ...sentCalls(messages)],
    textSpeaks: within([...interfaces, ...systems], "systemReminder").some(
      (reminder) => contentOf(reminder) === lastTextSpeaks,
    ),
    errand: delegation && {
      subAgent: parameterOf(delegation, "subAgent"),
      request: parameterOf(delegation, "request"),
    },
    toDelegate: commandToDelegate(within(turn, "systemEvent").map(contentOf), newMessages),
  };
};

const parameterOf = (call: Element, name: string): string =>
  within([call], "parameter")
    .filter((parameter) => attribute(parameter, "name") === name)
    .map(contentOf)
    .join("");

/** Reads what the agent is told of a command to delegate, and the command itself. */
const commandToDelegate = (
  notes: readonly string[],
  newMessages: readonly NewMessage[],
): RehearsedErrand | undefined => {
  const [, subAgent] = /call the function delegate for the sub-agent (\S+) with/.exec(notes.at(-1) ?? "") ?? [];
  if (subAgent === undefined) return undefined;
  const command = newMessages.findLast(({ body }) => /\bdelegate\b/i.test(body) && body.includes(subAgent));
  const behind = command?.body.replace(/^.*?\bdelegate\b/is, "") ?? "";
  const request = behind.slice(behind.indexOf(subAgent) + subAgent.length).replace(/^["']/, "");
  return { subAgent, request: unquote(request.trim()) };
};

const resultOf = (result: Element | undefined): string =>
  result ? within([result], "result").map(contentOf).join("\n") : "";

/** Calls that are told as elements. */
const shownCalls = (turn: readonly Element[]): RehearsalView["calls"] => {
  const results = within(turn, "functionResult");
  return within(turn, "functionCall").map((call) => ({
    name: attribute(call, "function"),
    result: resultOf(results.find((result) => attribute(result, "id") === attribute(call, "id"))),
  }));
};

const toolCalls = z.array(z.object({ id: z.string(), function: z.object({ name: z.string() }) }));

/** Calls that were sent back as messages of their own. */
const sentCalls = (messages: readonly Message[]): RehearsalView["calls"] =>
  messages.flatMap((message) => {
    const calls = toolCalls.safeParse(message.tool_calls);
    return (calls.data ?? []).map((call) => {
      const answer = messages.find((other) => "tool_call_id" in other && other.tool_call_id === call.id);
      return { name: call.function.name, result: resultOf(answer && parse(answer.content)) };
    });
  });

/** Reads what a submodel is asked: a question about a text; undefined where that is not what stands there. */
export const readQuestion = (message: string): { readonly question: string; readonly text: string } | undefined => {
  const [, content, question] = /^(<content\b.*<\/content>)\s*The question: (.*)$/s.exec(message) ?? [];
  return content === undefined || question === undefined ? undefined : { question, text: contentOf(parse(content)) };
};
