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
  const server = String(
    shown.flatMap((part) => [part, ...all(part, "chatSystem")]).find(({ name }) => name === "chatSystem")?.attributes
      .systemId,
  );
  const self = String(shown.find(({ name }) => name === "chatSystem")?.attributes.loggedInAs);
  const parts = shown.flatMap((part) => (part.name === "log" ? logWindows(part, shown) : [part]));
  const children = parts.flatMap((part) => (part.name === "chatInterface" ? childrenOf(part) : [part]));
  return withNames({ ...root, children }, self, server);
};

const childrenOf = ({ children }: Element): readonly Element[] => (typeof children === "string" ? [] : children);

/** A log as a window for each room, and one for the ephemeris. What is said only where it changes stands on each. */
export const logWindows = (log: Element, shown: readonly Element[] = []): Element[] => {
  const rooms = shown.filter(({ name }) => name === "chatSystem").flatMap((system) => all(system, "room"));
  const numbered = (n: unknown) => rooms.find(({ attributes }) => attributes.n === n)?.attributes.roomId;
  let [room, speaker] = ["", undefined as unknown];
  const sources = childrenOf(log).flatMap((line): [string, Element][] => {
    const { name, attributes, children } = line;
    if (name === "room") [room, speaker] = [String(attributes.roomId ?? numbered(attributes.n)), undefined];
    if (name === "room") return [];
    if (name !== "message") return [[name === "roomEvent" ? room : "ephemeris", line]];
    const sender = attributes.sender ?? (attributes.sent ? undefined : (speaker as string));
    speaker = sender ?? speaker;
    return [[room, { name, attributes: { ...attributes, sender }, children }]];
  });
  return [...Map.groupBy(sources, ([source]) => source)].map(([src, lines]) => ({
    name: "window",
    attributes: { windowId: `log of ${src}`, srcType: "chatHistory", src, contentType: "text/lmml", system: true },
    children: [{ name: "content", attributes: {}, children: lines.map(([, line]) => line) }],
  }));
};

/** Elements with users by their full ids, where they are named by what is said once. */
const withNames = (whole: Element, self: string, server: string): Element => {
  const { name, attributes, children } = whole;
  const fullName = (user: string) => (/[@:]/.test(user) ? user : `@${user}:${server}`);
  const isEvent = name === "message" || name === "roomEvent";
  const { id, sender = attributes.sent ? self : undefined, target } = attributes;
  const named = isEvent && {
    ...(id !== undefined && { eventId: id }),
    ...(sender !== undefined && { sender: fullName(String(sender)) }),
    ...(target !== undefined && { target: fullName(String(target)) }),
  };
  const inner = typeof children === "string" ? children : children.map((child) => withNames(child, self, server));
  return { name, attributes: { ...attributes, ...named }, children: inner };
};

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

/** Calls of the running turn so far, with results. */
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
