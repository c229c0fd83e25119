import type { EventId } from "../lib/ids.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { boxPart } from "./box-part.ts";
import { type Allotment, type Budget, divide, logLimit, logRoom, nothing } from "./budget.ts";
import { partsOf, systemParts, wantedOf } from "./chat-interface.ts";
import { ephemerisRoom, turnRoom } from "./ephemeris-room.ts";
import { eventIdsIn, frameTooLarge } from "./layout-frame.ts";
import { listPart, type Shown } from "./list-part.ts";
import { newestEnd } from "./log-pieces.ts";
import { clip } from "./measure.ts";
import type { Part } from "./part.ts";
import { closedRoom, memberElement, openRoom, roomAttributes } from "./room.ts";
import { localTime } from "./time.ts";
import type { Prompt, RoomView, World } from "./types.ts";

/** Share of `charsMax` for the first render of a turn; the rest is for the steps that are appended to it. */
const renderShare = 0.85;
/** Steps by which a log is left out that has outgrown its room in one render. */
const stepShare = 1 / 16;
/** The most that other rooms take of a render beyond a very small one, with their members, and again with what is unread. */
const roomsMost = (max: number): number => Math.floor(0.09 * Math.max(0, max - 4_000));

/**
 * Orders the prompt by change: guides, prompt and persona first; then rooms with their members; then the log, to which
 * events are only added; last, what is different each time. So two calls of a conversation have a long beginning in
 * common, which providers need not read again.
 */
export const cacheable = (world: World): Prompt => {
  const plan = planOf(world);
  const { budget } = plan;
  if (budget.left < 0) throw frameTooLarge(world, budget.left);
  // The log is cut before anything is divided: nothing gives way to it.
  const pieces = newestEnd(world.log, logRoom(budget), Math.ceil(world.charsMax * stepShare));
  const log = pieces.map(({ text }) => text).join("");
  const { system, stable, tail, eventIds } = plan.write(divide(budget, log.length));
  return {
    system,
    user: `${stable}${log}${tail}`,
    borders: [stable.length, stable.length + log.length],
    eventIds: [...pieces.flatMap((piece) => piece.eventIds), ...eventIds],
  };
};

/** The size beyond which the log of this world is to be cut to half of it. */
export const logLimitOf = (world: World): number => logLimit(planOf(world).budget);

interface Rest {
  readonly system: string;
  readonly stable: string;
  readonly tail: string;
  readonly eventIds: readonly EventId[];
}

/** Everything but the log, as it can be cut. */
const planOf = (world: World): { budget: Budget; write: (chars: Allotment) => Rest } => {
  const open = world.rooms.filter((room) => !room.closed);
  const own = open.find((room) => room.roomId === world.conversation);
  const others = open.filter((room) => room !== own).toSorted((a, b) => (a.roomId < b.roomId ? -1 : 1));
  const ephemeris = world.ephemerisWindow ? world.ephemeris : [];
  const parts = partsOf({ ...world, rooms: own ? [inTail(own)] : [], ephemeris });
  const currentDatetime = localTime(world.now, world.timeZone);
  const max = Math.floor(world.charsMax * renderShare);
  const rooms = membersPart(others, world);
  const unread = unreadPart(world);
  const write = (chars: Allotment): Rest => {
    const systemId = clip(world.serverName);
    const loggedInAs = clip(world.agent.userId);
    const admins = parts.admins.cut(chars.admins);
    const todos = parts.todos.cut(chars.todos);
    const windows = parts.windows.cut(chars.windows);
    const shownOthers = rooms.cut(chars.rooms);
    const shownNews = unread.cut(chars.unread);
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
        element("chatSystem", { systemId, loggedInAs, roomsLeftOut: shownNews.leftOut || undefined }, [
          own &&
            openRoom({ ...inTail(own), memberCount: 0 }, world, {
              members: none,
              history: parts.history.cut(chars.history),
              newEvents: parts.newEvents.cut(chars.newEvents),
            }),
          ...shownNews.elements,
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
  const frame = write(nothing);
  const wanted = {
    ...wantedOf(parts, max),
    otherRooms: 0,
    rooms: Math.min(rooms.wanted, roomsMost(max)),
    unread: Math.min(unread.wanted, roomsMost(max)),
  };
  const left = max - frame.system.length - frame.stable.length - frame.tail.length;
  return { budget: { max, left, wanted, newEventsLeast: parts.newEvents.least }, write };
};

const none: Shown = { elements: [], reach: 0, leftOut: 0 };

/** In the tail a room shows its history only where its window was moved: otherwise it stands in the log. */
const inTail = (room: RoomView): RoomView => (room.historyWindow ? room : { ...room, history: [] });

/** Rooms in the tail, each whole or not at all. */
const unreadPart = (world: World): Part<Shown> =>
  boxPart(
    world.rooms.flatMap((room) => roomInTail(room, world)),
    {
      depth: 2,
      limit: world.charsMax,
      weight: () => 1,
      shell: (room) => room,
      part: (room) => ({ wanted: 0, cut: () => room }),
    },
  );

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
