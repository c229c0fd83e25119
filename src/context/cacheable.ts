import type { EventId } from "../lib/ids.ts";
import { flat } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { boxPart } from "./box-part.ts";
import { type Allotment, divide, nothing } from "./budget.ts";
import { partsOf, systemParts, wantedOf } from "./chat-interface.ts";
import { ephemerisRoom, turnRoom } from "./ephemeris-room.ts";
import { eventIdsIn, frameTooLarge } from "./layout-frame.ts";
import { listPart, type Shown } from "./list-part.ts";
import { clip } from "./measure.ts";
import type { Part } from "./part.ts";
import { closedRoom, historyWindowId, memberElement, openRoom, roomAttributes } from "./room.ts";
import { localTime } from "./time.ts";
import type { LogPiece, Prompt, RoomView, World } from "./types.ts";

/** What the first render of a turn may take of `charsMax`; the rest is for the steps that are appended to it. */
const renderShare = 0.85;
/** The most that one entry takes in the log, in characters, for a conversation of `charsMax`. */
export const logEntryMax = (charsMax: number): number => Math.floor(charsMax / 20);

/** Levels between a piece of the log and its entries. */
export const logDepth = 2;

/**
 * What does not change comes first: guides, prompt and persona; rooms with their members; the log, to which events are
 * only added; then what is different each time. So two calls of a conversation have a long beginning in common, which
 * providers need not read again.
 */
export const cacheable = (world: World): Prompt => {
  const pieces = world.log.map(written);
  const plan = planOf(world);
  const frame = plan.write(nothing);
  const max = Math.floor(world.charsMax * renderShare);
  let left = max - frame.system.length - frame.stable.length - frame.tail.length - total(pieces);
  // The log was cut to its share when it was made; in a very small context even that can be too much.
  while (left < 0 && pieces.length > 0) left += pieces.shift()?.text.length ?? 0;
  if (left < 0) throw frameTooLarge(world, left);
  const { system, stable, tail, eventIds } = plan.write(divide(left, plan.wanted));
  const log = pieces.map(({ text }) => text).join("");
  return {
    system,
    user: `${stable}${log}${tail}`,
    borders: [stable.length, stable.length + log.length],
    eventIds: [...pieces.flatMap((piece) => piece.eventIds), ...eventIds],
  };
};

const total = (pieces: readonly { readonly text: string }[]): number =>
  pieces.reduce((chars, { text }) => chars + text.length, 0);

interface Written {
  readonly text: string;
  readonly eventIds: readonly EventId[];
}

/** Pieces as they were last written, by their first entries. */
const known = new WeakMap<Element, Written & LogPiece>();

const written = (piece: LogPiece): Written => {
  const { source, elements } = piece;
  const [first] = elements;
  const before = first && known.get(first);
  if (before?.source === source && isSame(before.elements, elements)) return before;
  const shown = pieceElement(piece);
  const now = { ...piece, text: flat(`${render(shown)}\n\n`), eventIds: eventIdsIn(shown) };
  if (first) known.set(first, now);
  return now;
};

const isSame = (some: readonly Element[], others: readonly Element[]): boolean =>
  some.length === others.length && some.every((one, index) => one === others[index]);

const pieceElement = ({ source, elements }: LogPiece): Element => {
  const windowId = source === "ephemeris" ? source : clip(historyWindowId(source), 64);
  const attributes = {
    srcType: "chatHistory",
    src: clip(source),
    contentType: "text/lmml",
    pinned: true,
    system: true,
  };
  return element("window", { windowId, ...attributes }, [element("content", {}, elements)]);
};

interface Rest {
  readonly system: string;
  readonly stable: string;
  readonly tail: string;
  readonly eventIds: readonly EventId[];
}

/** Everything but the log, as it can be cut. */
const planOf = (world: World): { wanted: Allotment; write: (chars: Allotment) => Rest } => {
  const open = world.rooms.filter((room) => !room.closed);
  const own = open.find((room) => room.roomId === world.conversation);
  const others = open.filter((room) => room !== own).toSorted((a, b) => (a.roomId < b.roomId ? -1 : 1));
  const ephemeris = world.ephemerisWindow ? world.ephemeris : [];
  const parts = partsOf({ ...world, rooms: own ? [inTail(own)] : [], ephemeris });
  const currentDatetime = localTime(world.now, world.timeZone);
  const otherRooms = membersPart(others, world);
  const wanted: Allotment = {
    ...wantedOf(parts),
    otherRooms: otherRooms.wanted,
  };
  const write = (chars: Allotment): Rest => {
    const systemId = clip(world.serverName);
    const loggedInAs = clip(world.agent.userId);
    const admins = parts.admins.cut(chars.admins);
    const todos = parts.todos.cut(chars.todos);
    const windows = parts.windows.cut(chars.windows);
    const shownOthers = otherRooms.cut(chars.otherRooms);
    const leftOut = world.roomsLeftOut + shownOthers.leftOut;
    const stable = element(
      "chatSystem",
      {
        systemId,
        loggedInAs,
        adminsLeftOut: admins.leftOut > 0 ? admins.leftOut : undefined,
        roomsLeftOut: leftOut > 0 ? leftOut : undefined,
      },
      [
        ...admins.elements,
        own && roomWithMembers(own, world, parts.members.cut(chars.members)),
        ...shownOthers.elements,
      ],
    );
    const tail = element(
      "chatInterface",
      {
        currentDatetime,
        agentUnderlyingModel: clip(world.agent.model),
        agentRunningOnSystem: systemId,
        todosLeftOut: todos.leftOut > 0 ? todos.leftOut : undefined,
        windowsLeftOut: windows.leftOut > 0 ? windows.leftOut : undefined,
      },
      [
        element("agentParameters", {
          wakeUpTimerSeconds: world.agent.wakeUpTimerSeconds ?? "off",
          mode: world.agent.mode,
        }),
        element("chatSystem", { systemId, loggedInAs }, [
          own &&
            openRoom({ ...inTail(own), memberCount: 0 }, world, {
              members: none,
              history: parts.history.cut(chars.history),
              newEvents: parts.newEvents.cut(chars.newEvents),
            }),
          ...world.rooms.flatMap((room) => roomInTail(room, world)),
          world.ephemerisWindow
            ? ephemerisRoom(world, {
                ephemeris: parts.ephemeris.cut(chars.ephemeris),
                turn: parts.turn.cut(chars.turn),
              })
            : turnRoom(world, parts.turn.cut(chars.turn)),
          parts.scratchpad.cut(chars.scratchpad),
        ]),
        ...parts.reminders.cut(chars.reminders),
        ...todos.elements,
        ...windows.elements,
      ],
    );
    const { systemPrompt, persona, guides } = systemParts(parts, chars);
    const postPrompt = parts.postPrompt.cut(chars.postPrompt);
    return {
      system: [...guides, systemPrompt, persona].filter((text) => text !== "").join("\n\n"),
      stable: `${render(stable)}\n\n`,
      tail: postPrompt === "" ? render(tail) : `${render(tail)}\n\n${postPrompt}`,
      eventIds: eventIdsIn(tail),
    };
  };
  return { wanted, write };
};

const none: Shown = { elements: [], reach: 0, leftOut: 0 };

/** In the tail a room shows its history only where its window was moved: otherwise it stands in the log. */
const inTail = (room: RoomView): RoomView => (room.historyWindow ? room : { ...room, history: [] });

/** Other rooms are in the tail where there is something to say of them that changes. */
const roomInTail = (room: RoomView, world: World): Element[] => {
  if (room.roomId === world.conversation && !room.closed) return [];
  if (room.closed) return [closedRoom(room, world)];
  return room.unread > 0 ? [element("room", { ...roomAttributes(room, world), unread: room.unread })] : [];
};

const roomWithMembers = (room: RoomView, world: World, members: Shown): Element => {
  const leftOut = room.memberCount - members.elements.length;
  const attributes = { ...roomAttributes(room, world), membersLeftOut: leftOut > 0 ? leftOut : undefined };
  return element("room", attributes, members.elements);
};

const membersPart = (rooms: readonly RoomView[], world: World): Part<Shown> =>
  boxPart(rooms, {
    depth: 1,
    limit: world.charsMax,
    weight: () => 1,
    shell: (room) => roomWithMembers(room, world, none),
    part: (room) => {
      const members = listPart(room.members.map(memberElement), { depth: 2, limit: world.charsMax, keep: "first" });
      return { wanted: members.wanted, cut: (max) => roomWithMembers(room, world, members.cut(max)) };
    },
  });
