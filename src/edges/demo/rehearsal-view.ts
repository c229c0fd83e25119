import { z } from "zod";
import type { Element } from "../../base/lmml/element.ts";
import { parse } from "../../base/lmml/parse.ts";
import { render } from "../../base/lmml/render.ts";
import { lastTextSpeaks } from "../../base/prompt/reminders.ts";

export interface NewMessage {
  readonly sender: string;
  readonly body: string;
  /** The thread in which it stands. */
  readonly threadId: string | undefined;
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
}

/**
 * Wakes of the home conversation: what is new in the rooms is answered by the conversations there. What was scheduled in
 * a room names it.
 */
const wakesAtHome = new Set(["timer", "default mode", "schedule", "mailbox"]);

const within = (parents: readonly Element[], name: string): Element[] =>
  parents.flatMap(({ children }) =>
    typeof children === "string" ? [] : children.filter((child) => child.name === name),
  );

const attribute = ({ attributes }: Element, name: string): string => String(attributes[name] ?? "");

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
      ...content.matchAll(/^<(chatInterface|chatSystem|window)\b(?:[^>]*\/>|[\s\S]*?^<\/\1>)/gm),
    ])
    .map(([text]) => parse(text));

/** Reads what an agent is shown in a request; undefined where it holds no chat interface. */
export const readView = (messages: readonly Message[]): RehearsalView | undefined => {
  const interfaces = readPrompt(messages).filter(({ name }) => name === "chatInterface");
  if (interfaces.length === 0) return undefined;
  const systems = within(interfaces, "chatSystem");
  const self = systems[0] ? attribute(systems[0], "loggedInAs") : "";
  const rooms = within(systems, "room");
  const turn = within(
    rooms.filter((room) => attribute(room, "roomId") === "ephemeris"),
    "newEvents",
  );
  const [wake] = within(turn, "timestamp");
  const scheduled = within(turn, "systemEvent").some((event) => attribute(event, "roomId") !== "");
  const atHome = wake !== undefined && wakesAtHome.has(attribute(wake, "wakeReason")) && !scheduled;
  const [first] = atHome ? [] : rooms;
  const roomId = first && attribute(first, "roomId") !== "ephemeris" ? attribute(first, "roomId") : undefined;
  const own = rooms.filter((room) => attribute(room, "roomId") === roomId);
  return {
    roomId,
    newMessages: within(within(own, "newEvents"), "message")
      .filter((message) => attribute(message, "sender") !== self)
      .map((message) => ({
        sender: attribute(message, "sender"),
        body: contentOf(message),
        threadId: attribute(message, "threadId") || undefined,
      })),
    calls: [...shownCalls(turn), ...sentCalls(messages)],
    textSpeaks: within(interfaces, "systemReminder").some((reminder) => contentOf(reminder) === lastTextSpeaks),
  };
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
