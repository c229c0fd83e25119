import { LRUCache } from "lru-cache";
import { type Element, element } from "../lmml/element.ts";
import { escapeText } from "../lmml/escape.ts";
import { keepRendered, render } from "../lmml/render.ts";
import { visible } from "../lmml/visible.ts";
import type { Allotment } from "./budget.ts";
import { newestResults } from "./ephemeris.ts";
import { ephemerisPart, ephemerisRoom } from "./ephemeris-room.ts";
import { listPart } from "./list-part.ts";
import { clip } from "./measure.ts";
import { newsPart } from "./news-part.ts";
import { otherRoomsPart } from "./other-rooms.ts";
import { manyParts, type Part, plainPart, textPart } from "./part.ts";
import { memoryElement, recalledPart } from "./recalled.ts";
import type { RecalledView } from "./recalled-view.ts";
import { openRoom, roomLists } from "./room.ts";
import { localTime } from "./time.ts";
import { timelineWriter } from "./timeline.ts";
import { todosPart } from "./todo.ts";
import type { GuideView, TimelineEntry, World } from "./types.ts";
import { personaWindow, scratchpadWindow, windowsPart } from "./window.ts";

/** Title under which an agent is shown `system:/guides/clevernet.md`. */
export const guideTitle = (serverName: string): string => `Clevernet Matrix System on ${serverName}`;

const guideCharsKept = 1_000_000;

const absent: Part<undefined> = { wanted: 0, cut: () => undefined };
/** Members that are shown whatever else there is. */
const membersNeeded = 20;
const noRoom = { history: [], members: [], newEvents: [] };

/** Guides are long, and seldom others than before. */
const guides = new LRUCache<string, Part<Element>>({ maxSize: guideCharsKept });

const guidePart = ({ title, text, isPlain }: GuideView): Part<Element | string> => {
  if (isPlain) return plainPart(escapeText(visible(text.trim())));
  const key = `${title}\n${text}`;
  const known = guides.get(key);
  if (known) return known;
  const part = textPart(text, 0, (shown, isTruncated) =>
    keepRendered(element("agentGuide", { title: clip(title), truncated: isTruncated }, shown)),
  );
  guides.set(key, part, { size: key.length });
  return part;
};

/** How a layout shows the events of the own room, and what is recalled for them. */
interface Writers {
  readonly event: (entry: TimelineEntry) => Element;
  readonly memory: (recalled: RecalledView) => Element;
}

/** Everything in the world that can be cut. A part of no room is empty. Without writers: as the layout `seed` shows it. */
export const partsOf = (
  world: World,
  { event: write, memory }: Writers = { event: timelineWriter(world), memory: memoryElement },
) => {
  const { agent, charsMax: limit } = world;
  const own = world.rooms.find((room) => room.roomId === world.conversation && !room.isClosed);
  const others = world.rooms.filter((room) => room !== own);
  return {
    own,
    ...roomLists(own ?? noRoom, write, limit),
    newEvents: newsPart(
      (own?.newEvents ?? []).map((entry) => ({
        eventId: entry.eventId,
        element: write(entry),
        isKnown: entry.sender === agent.userId || own?.known?.has(entry.eventId) === true,
      })),
      { depth: 4, limit },
    ),
    firstMembers: roomLists({ ...noRoom, members: own?.members.slice(0, membersNeeded) ?? [] }, write, limit).members,
    reminders: manyParts(
      world.reminders.map((reminder) =>
        textPart(reminder, 1, (text, isTruncated) => element("systemReminder", { truncated: isTruncated }, text)),
      ),
    ),
    postPrompt: plainPart(agent.postPrompt ?? ""),
    turn: listPart(world.turn.entries, { depth: 4, limit, keep: "last", spared: newestResults(world.turn.entries) }),
    systemPrompt: plainPart(agent.systemPrompt),
    persona: agent.persona ? personaWindow(agent.persona, { depth: 0, limit }) : absent,
    guides: manyParts(world.guides.map(guidePart)),
    admins: listPart(
      world.systemAdmins.map((admin) => element("systemAdmin", {}, admin)),
      { depth: 2, limit, keep: "first" },
    ),
    ephemeris: ephemerisPart(world, limit),
    otherRooms: otherRoomsPart(others, world, limit),
    scratchpad: agent.scratchpad ? scratchpadWindow(agent.scratchpad, { depth: 2, limit }) : absent,
    todos: todosPart(world.todos, limit),
    recalled: recalledPart(own ? (world.recalled ?? []) : [], memory, 5, limit),
    windows: windowsPart(world.windows, limit),
  };
};
export type Parts = ReturnType<typeof partsOf>;

/** The most that members take of a render beyond the first of them, which are always wanted. */
const membersShare = 0.08;

/** Characters that each part wants beyond its least form, in a render of `max` characters. */
export const wantedOf = (parts: Parts, max: number): Allotment => ({
  reminders: parts.reminders.wanted,
  postPrompt: parts.postPrompt.wanted,
  todos: parts.todos.wanted,
  recalled: parts.recalled.wanted,
  turn: parts.turn.wanted,
  newEvents: parts.newEvents.wanted,
  systemPrompt: parts.systemPrompt.wanted,
  persona: parts.persona.wanted,
  guides: parts.guides.wanted,
  admins: parts.admins.wanted,
  members: Math.min(parts.members.wanted, Math.max(parts.firstMembers.wanted, Math.floor(max * membersShare))),
  rooms: 0,
  unread: 0,
  status: 0,
  activity: 0,
  history: parts.history.wanted,
  ephemeris: parts.ephemeris.wanted,
  otherRooms: parts.otherRooms.wanted,
  scratchpad: parts.scratchpad.wanted,
  windows: parts.windows.wanted,
});

/** Texts of the system message. */
export const systemParts = (parts: Parts, chars: Allotment) => {
  const persona = parts.persona.cut(chars.persona);
  return {
    systemPrompt: parts.systemPrompt.cut(chars.systemPrompt),
    persona: persona ? render(persona) : "",
    guides: parts.guides.cut(chars.guides).map((guide) => (typeof guide === "string" ? guide : render(guide))),
  };
};

/** The system message: who the agent is, and how its world works. */
export const systemMessage = (parts: Parts, chars: Allotment): string => {
  const { systemPrompt, persona, guides } = systemParts(parts, chars);
  return [systemPrompt, persona, ...guides].filter((text) => text !== "").join("\n\n");
};

/** The user message without what follows it: the agent's world at this moment, in the order of the layout `seed`. */
export const chatInterface = (world: World, parts: Parts, chars: Allotment): Element => {
  const { agent, serverName } = world;
  const systemId = clip(serverName);
  const loggedInAs = clip(agent.userId);
  const admins = parts.admins.cut(chars.admins);
  const others = parts.otherRooms.cut(chars.otherRooms);
  const roomsLeftOut = world.roomsLeftOut + others.leftOut;
  const todos = parts.todos.cut(chars.todos);
  const windows = parts.windows.cut(chars.windows);
  const own =
    parts.own &&
    openRoom(parts.own, world, {
      members: parts.members.cut(chars.members),
      history: parts.history.cut(chars.history),
      newEvents: parts.newEvents.cut(chars.newEvents),
      recalled: parts.recalled.cut(chars.recalled),
    });
  return element(
    "chatInterface",
    {
      currentDatetime: localTime(world.now, world.timeZone),
      agentUnderlyingModel: clip(agent.model),
      agentRunningOnSystem: systemId,
      todosLeftOut: todos.leftOut > 0 ? todos.leftOut : undefined,
      windowsLeftOut: windows.leftOut > 0 ? windows.leftOut : undefined,
    },
    [
      element("agentParameters", { wakeUpTimerSeconds: agent.wakeUpTimerSeconds ?? "off", mode: agent.mode }),
      element(
        "chatSystem",
        {
          systemId,
          loggedInAs,
          adminsLeftOut: admins.leftOut > 0 ? admins.leftOut : undefined,
          roomsLeftOut: roomsLeftOut > 0 ? roomsLeftOut : undefined,
        },
        [
          ...admins.elements,
          own,
          ...others.elements,
          ephemerisRoom(world, {
            ephemeris: parts.ephemeris.cut(chars.ephemeris),
            turn: parts.turn.cut(chars.turn),
          }),
          parts.scratchpad.cut(chars.scratchpad),
        ],
      ),
      ...parts.reminders.cut(chars.reminders),
      ...todos.elements,
      ...windows.elements,
    ],
  );
};
