import { readView } from "../../src/demo/rehearsal-view.ts";
import type { Element } from "../../src/lmml/element.ts";
import { parse } from "../../src/lmml/parse.ts";
import { type ModelRequest, type Step, say, userText } from "./scripted-model.ts";

/** The chat interface of a request, parsed. */
export const chatInterface = (request: ModelRequest): Element => {
  const text = userText(request);
  const endTag = "</chatInterface>";
  return parse(text.slice(text.indexOf("<chatInterface"), text.indexOf(endTag) + endTag.length));
};

/** All elements of a name at or below `root`, in document order. */
export const all = (root: Element | undefined, name: string): Element[] => {
  if (!root) return [];
  const own = root.name === name ? [root] : [];
  return typeof root.children === "string" ? own : [...own, ...root.children.flatMap((child) => all(child, name))];
};

export const textOf = ({ children }: Element): string => (typeof children === "string" ? children : "");

/** A room as it is shown; `ephemeris` is one, too. */
export const roomSeen = (request: ModelRequest, roomId: string): Element | undefined =>
  all(chatInterface(request), "room").find((room) => room.attributes.roomId === roomId);

const messagesBelow = (request: ModelRequest, roomId: string, part: string): string[] =>
  all(roomSeen(request, roomId), part)
    .flatMap((found) => all(found, "message"))
    .map(textOf);

/** Messages in the history window of a room, oldest first. */
export const historyOf = (request: ModelRequest, roomId: string): string[] => messagesBelow(request, roomId, "window");

/** Messages among the new events of a room, oldest first, the agent's own included. */
export const newsOf = (request: ModelRequest, roomId: string): string[] => messagesBelow(request, roomId, "newEvents");

/** What the running turn has called so far, with results. */
export const callsOf = (request: ModelRequest) => readView(userText(request))?.calls ?? [];

/** Number of the running turn. */
export const turnOf = (request: ModelRequest): number => {
  const [wake] = all(roomSeen(request, "ephemeris"), "timestamp");
  return Number(wake?.attributes.turnId);
};

/** The agent's user id. */
export const agentOf = (request: ModelRequest): string =>
  String(all(chatInterface(request), "chatSystem")[0]?.attributes.loggedInAs);

/** The room of the conversation; "" at home. */
export const roomOf = (request: ModelRequest): string => readView(userText(request))?.roomId ?? "";

export const remindersOf = (request: ModelRequest): string[] =>
  all(chatInterface(request), "systemReminder").map(textOf);

/** The agent says it in the room of its conversation, and its turn ends. */
export const answer = (request: ModelRequest, content: string): Step =>
  say(request, roomOf(request), content, { final: true });
