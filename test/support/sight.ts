import type { Element } from "../../src/base/lmml/element.ts";
import { readPrompt, readView } from "../../src/edges/demo/rehearsal-view.ts";
import { all, textOf } from "./elements.ts";
import { type ModelRequest, type Step, say } from "./scripted-model.ts";

/**
 * All that a request shows, as one chat interface: what stands apart from it in a layout that appends is put into it,
 * and what is told of a room in several places stands in the first.
 */
export const chatInterface = (request: ModelRequest): Element => {
  const shown = readPrompt(request.body.messages);
  const root = shown.find(({ name }) => name === "chatInterface");
  if (!root) throw new Error("the request holds no chat interface");
  return { ...root, children: shown.flatMap((part) => (part.name === "chatInterface" ? childrenOf(part) : [part])) };
};

const childrenOf = ({ children }: Element): readonly Element[] => (typeof children === "string" ? [] : children);

/** A room as it is shown, with its history; `ephemeris` is one, too. */
export const roomSeen = (request: ModelRequest, roomId: string): Element | undefined => {
  const shown = chatInterface(request);
  const [room, ...more] = all(shown, "room").filter(({ attributes }) => attributes.roomId === roomId);
  const log = childrenOf(shown).filter(({ name, attributes }) => name === "window" && attributes.src === roomId);
  return room && { ...room, children: [room, { ...room, children: log }, ...more].flatMap(childrenOf) };
};

const messagesBelow = (request: ModelRequest, roomId: string, part: string): string[] =>
  all(roomSeen(request, roomId), part)
    .flatMap((found) => all(found, "message"))
    .map(textOf);

/** Messages in the history window of a room, oldest first. */
export const historyOf = (request: ModelRequest, roomId: string): string[] => messagesBelow(request, roomId, "window");

/** Messages among the new events of a room, oldest first, the agent's own included. */
export const newsOf = (request: ModelRequest, roomId: string): string[] => messagesBelow(request, roomId, "newEvents");

/** What the running turn has called so far, with results. */
export const callsOf = (request: ModelRequest) => readView(request.body.messages)?.calls ?? [];

/** Number of the running turn. */
export const turnOf = (request: ModelRequest): number => {
  const [wake] = all(roomSeen(request, "ephemeris"), "timestamp");
  return Number(wake?.attributes.turnId);
};

/** The agent's user id. */
export const agentOf = (request: ModelRequest): string =>
  String(all(chatInterface(request), "chatSystem")[0]?.attributes.loggedInAs);

/** The room of the conversation; "" at home. */
export const roomOf = (request: ModelRequest): string => readView(request.body.messages)?.roomId ?? "";

export const remindersOf = (request: ModelRequest): string[] =>
  all(chatInterface(request), "systemReminder").map(textOf);

/** The agent says it in the room of its conversation, and its turn ends. */
export const answer = (request: ModelRequest, content: string): Step =>
  say(request, roomOf(request), content, { final: true });
