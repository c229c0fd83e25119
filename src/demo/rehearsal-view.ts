import { lastTextSpeaks } from "../context/reminders.ts";
import type { Element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { render } from "../lmml/render.ts";

export interface NewMessage {
  readonly sender: string;
  readonly body: string;
  /** The thread in which it stands. */
  readonly threadId: string | undefined;
}

/** What a script must know of the chat interface that an agent is shown. */
export interface View {
  /** The room of the conversation; undefined in the home conversation. */
  readonly roomId: string | undefined;
  /** What others have said in that room since, oldest first. */
  readonly newMessages: readonly NewMessage[];
  /** What the running turn has called so far, oldest first. `result` is text or LMML. */
  readonly calls: readonly { readonly name: string; readonly result: string }[];
  /** The agent speaks by the last text of its turn, not by a tool. */
  readonly textSpeaks: boolean;
}

/** Wakes of the home conversation: what is new in the rooms is answered by the conversations there. */
const wakesAtHome = new Set(["timer", "default mode", "schedule", "mailbox"]);

const within = (parents: readonly Element[], name: string): Element[] =>
  parents.flatMap(({ children }) =>
    typeof children === "string" ? [] : children.filter((child) => child.name === name),
  );

const attribute = ({ attributes }: Element, name: string): string => String(attributes[name] ?? "");

const contentOf = ({ children }: Element): string =>
  typeof children === "string" ? children : children.map(render).join("\n");

/** Reads a user message; undefined where it holds no chat interface. What follows it, such as a postPrompt, is skipped. */
export const readView = (userMessage: string): View | undefined => {
  const start = userMessage.indexOf("<chatInterface");
  const endTag = "</chatInterface>";
  const end = userMessage.indexOf(endTag, start);
  if (start < 0 || end < 0) return undefined;
  const chatInterface = parse(userMessage.slice(start, end + endTag.length));

  const systems = within([chatInterface], "chatSystem");
  const self = systems[0] ? attribute(systems[0], "loggedInAs") : "";
  const rooms = within(systems, "room");
  const turn = within(
    rooms.filter((room) => attribute(room, "roomId") === "ephemeris"),
    "newEvents",
  );
  const [wake] = within(turn, "timestamp");
  const atHome = wake !== undefined && wakesAtHome.has(attribute(wake, "wakeReason"));
  const own = rooms.slice(0, atHome ? 0 : 1).filter((room) => attribute(room, "roomId") !== "ephemeris");
  const results = within(turn, "functionResult");
  return {
    roomId: own[0] && attribute(own[0], "roomId"),
    newMessages: within(within(own, "newEvents"), "message")
      .filter((message) => attribute(message, "sender") !== self)
      .map((message) => ({
        sender: attribute(message, "sender"),
        body: contentOf(message),
        threadId: attribute(message, "threadId") || undefined,
      })),
    calls: within(turn, "functionCall").map((call) => ({
      name: attribute(call, "function"),
      result: within(
        results.filter((result) => attribute(result, "id") === attribute(call, "id")),
        "result",
      )
        .map(contentOf)
        .join("\n"),
    })),
    textSpeaks: within([chatInterface], "systemReminder").some((reminder) => contentOf(reminder) === lastTextSpeaks),
  };
};
