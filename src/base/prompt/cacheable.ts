import type { EventId, RoomId } from "../lib/ids.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { boxPart } from "./box-part.ts";
import { type Allotment, type Budget, divide, logLimit, logRoom, nothing } from "./budget.ts";
import { partsOf, systemParts, wantedOf } from "./chat-interface.ts";
import { ephemerisWindow } from "./ephemeris-room.ts";
import { frameTooLarge } from "./layout-frame.ts";
import { leanNews } from "./lean.ts";
import { listPart, type Shown } from "./list-part.ts";
import { logEnd, logLeast, newestEnd } from "./log.ts";
import { clip, sizeAt } from "./measure.ts";
import type { Part } from "./part.ts";
import { leanMemory } from "./recalled.ts";
import { isStanding } from "./reminders.ts";
import { leanAttributes, leanRoom, memberElement } from "./room.ts";
import { activityPart, statusParts, wantedState } from "./state.ts";
import { turnMark } from "./tail.ts";
import { localTime } from "./time.ts";
import type { Prompt, RoomView, TimelineEntry, World } from "./types.ts";

/** Share of `charsMax` for the first render of a turn; the rest is for the steps that are appended to it. */
const renderShare = 0.87;
/** Share by which a log shrinks at a time, if it has outgrown its room within one render. */
const stepShare = 1 / 16;
/** Largest share of other rooms in a render that is not very small: for their members, and again for unread events. */
const roomsMost = (max: number): number => Math.floor(0.09 * Math.max(0, max - 4_000));

/**
 * Orders the prompt by change: guides, prompt and persona first; then rooms with their members; then the log, to which
 * lines are only added; last, all that changes each time. So two calls of a conversation have a long beginning in
 * common, which providers need not read again. A fact about many items is said once.
 */
export const cacheable = (world: World): Prompt => {
  const plan = planOf(world);
  const { budget } = plan;
  if (budget.left < 0) throw frameTooLarge(world, budget.left);
  // The log is cut before the characters are divided: no other part gets less because of it.
  const step = Math.ceil(world.charsMax * stepShare);
  const log = newestEnd(world.log, world.timeZone, { room: logRoom(budget), step });
  const logged = Math.max(0, log.text.length - logLeast.length);
  const { system, stable, tail, waiting } = plan.write(divideForNews(budget, world.charsMax, logged));
  return {
    system,
    user: `${stable}${log.text}${logEnd}${tail}`,
    borders: [stable.length, stable.length + log.text.length],
    eventIds: [...log.eventIds, ...newIdsIn(world), ...recalledIdsIn(world)],
    waiting,
  };
};

/** Divides the characters. What is kept for the steps of the turn is given away where new events would be cut. */
const divideForNews = (budget: Budget, charsMax: number, log: number): Allotment => {
  const given = divide(budget, log);
  if (given.newEvents >= budget.wanted.newEvents) return given;
  return divide({ ...budget, left: budget.left + charsMax - budget.max }, log);
};

/** Largest size of this world's log; a longer one is cut to half of that. */
export const logLimitOf = (world: World): number => logLimit(planOf(world).budget);

/** Events that stand in the tail. */
const newIdsIn = ({ rooms, conversation }: World): EventId[] =>
  rooms
    .filter(({ isClosed }) => !isClosed)
    .flatMap((room) => [...(room.historyWindow && room.roomId === conversation ? room.history : []), ...room.newEvents])
    .map(({ eventId }) => eventId);

const recalledIdsIn = ({ recalled = [] }: World): EventId[] => recalled.flatMap(({ eventId }) => eventId ?? []);

interface Rest {
  readonly system: string;
  readonly stable: string;
  readonly tail: string;
  readonly waiting: Prompt["waiting"];
}

/** Everything but the log, as it can be cut. */
const planOf = (world: World): { budget: Budget; write: (chars: Allotment) => Rest } => {
  const { agent } = world;
  const { own, others } = openRooms(world);
  const ephemeris = world.ephemerisWindow ? world.ephemeris : [];
  const news = (entry: TimelineEntry) => leanNews(entry, agent.userId, world);
  const reading = { self: agent.userId, here: own?.roomId, timeZone: world.timeZone };
  const parts = partsOf(
    { ...world, rooms: own ? [inTail(own)] : [], ephemeris },
    { event: news, memory: (recalled) => leanMemory(recalled, reading) },
  );
  const max = Math.floor(world.charsMax * renderShare);
  const numbers = roomNumbers(world);
  const rooms = membersPart(others, numbers, world);
  const unread = unreadPart(world, news);
  const state = world.state && { status: statusParts(world.state), activity: activityPart(world.state) };
  const write = (chars: Allotment): Rest => {
    const admins = parts.admins.cut(chars.admins);
    const todos = parts.todos.cut(chars.todos);
    const windows = parts.windows.cut(chars.windows);
    const shownOthers = rooms.cut(chars.rooms);
    const shownNews = unread.cut(chars.unread);
    const leftOut = world.roomsLeftOut + shownOthers.leftOut;
    const newEvents = parts.newEvents.cut(chars.newEvents);
    const recalled = parts.recalled.cut(chars.recalled);
    const reminders = parts.reminders.cut(chars.reminders);
    const standing = reminders.filter((_, index) => isStanding(world.reminders[index] ?? ""));
    const stable = element(
      "chatSystem",
      {
        systemId: clip(world.serverName),
        loggedInAs: clip(agent.userId),
        agentUnderlyingModel: clip(agent.model),
        adminsLeftOut: admins.leftOut > 0 ? admins.leftOut : undefined,
        roomsLeftOut: leftOut > 0 ? leftOut : undefined,
      },
      [
        element("agentParameters", { wakeUpTimerSeconds: agent.wakeUpTimerSeconds ?? "off", mode: agent.mode }),
        ...admins.elements,
        own && roomWithMembers(own, numbers, parts.members.cut(chars.members)),
        ...shownOthers.elements,
        ...standing,
      ],
    );
    const tail = element(
      "chatInterface",
      {
        currentDatetime: localTime(world.now, world.timeZone),
        roomsLeftOut: shownNews.leftOut > 0 ? shownNews.leftOut : undefined,
        todosLeftOut: todos.leftOut > 0 ? todos.leftOut : undefined,
        windowsLeftOut: windows.leftOut > 0 ? windows.leftOut : undefined,
      },
      [
        own && leanRoom(inTail(own), { history: parts.history.cut(chars.history), newEvents, recalled }),
        ...shownNews.elements,
        element("room", { roomId: "ephemeris" }, [
          world.ephemerisWindow && ephemerisWindow(world, parts.ephemeris.cut(chars.ephemeris)),
          turnMark(world, parts.turn.cut(chars.turn)),
        ]),
        parts.scratchpad.cut(chars.scratchpad),
        ...(state?.status.cut(chars.status) ?? []),
        state?.activity?.cut(chars.activity),
        ...reminders.filter((reminder) => !standing.includes(reminder)),
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
      waiting: newEvents.waiting,
    };
  };
  const frame = write(nothing);
  const wanted = {
    ...wantedOf(parts, max),
    ...(state && wantedState(state)),
    otherRooms: 0,
    rooms: Math.min(rooms.wanted, roomsMost(max)),
    unread: Math.min(unread.wanted, roomsMost(max)),
  };
  const framed = [frame.system, frame.stable, logLeast, logEnd, frame.tail].join("");
  return { budget: { max, left: max - framed.length, wanted, newEventsLeast: parts.newEvents.least }, write };
};

/** In the tail a room shows its history only where its window was moved: otherwise it stands in the log. */
const inTail = (room: RoomView): RoomView => (room.historyWindow ? room : { ...room, history: [] });

const none: Shown = { elements: [], reach: 0, leftOut: 0 };

/** Other rooms are in the tail if something about them changes. */
const unreadPart = (world: World, news: (entry: TimelineEntry) => Element): Part<Shown> => {
  const others = world.rooms.filter(
    (room) => room.isClosed || (room.roomId !== world.conversation && (room.unread > 0 || room.newEvents.length > 0)),
  );
  const shell = ({ roomId, isClosed, unread }: RoomView, events: readonly Element[] = []): Element =>
    element("room", { roomId: clip(roomId), closed: isClosed, unread: unread > 0 ? unread : undefined }, [
      events.length > 0 ? element("newEvents", {}, events) : undefined,
    ]);
  return boxPart(others, {
    depth: 1,
    limit: world.charsMax,
    weight: () => 1,
    shell: (room) => shell(room),
    part: (room) => {
      const events = listPart(room.isClosed ? [] : room.newEvents.map(news), {
        depth: 3,
        limit: world.charsMax,
        keep: "last",
      });
      return { wanted: events.wanted, cut: (max) => shell(room, events.cut(max).elements) };
    },
  });
};

const openRooms = ({ rooms, conversation }: World) => {
  const open = rooms.filter((room) => !room.isClosed);
  const own = open.find((room) => room.roomId === conversation);
  return { own, others: open.filter((room) => room !== own).toSorted((a, b) => (a.roomId < b.roomId ? -1 : 1)) };
};

/**
 * Numbers the rooms for the log, in their order above it. The numbers count for one prompt, and change only when the text
 * above the log changes as well. No numbers, if there may be no place for all rooms.
 */
export const roomNumbers = (world: World): ReadonlyMap<RoomId, number> => {
  const { own, others } = openRooms(world);
  const shells = others.reduce((chars, room) => chars + sizeAt(roomWithMembers(room, new Map(), none), 1) + 8, 0);
  if (shells > roomsMost(world.charsMax * renderShare) / 2) return new Map();
  return new Map([...(own ? [own] : []), ...others].map(({ roomId }, index) => [roomId, index + 1]));
};

const roomWithMembers = (room: RoomView, numbers: ReadonlyMap<RoomId, number>, members: Shown): Element => {
  const leftOut = room.memberCount - members.elements.length;
  const attributes = { ...leanAttributes(room), membersLeftOut: leftOut > 0 ? leftOut : undefined };
  return element("room", { n: numbers.get(room.roomId), ...attributes }, members.elements);
};

const membersPart = (rooms: readonly RoomView[], numbers: ReadonlyMap<RoomId, number>, world: World): Part<Shown> =>
  boxPart(rooms, {
    depth: 1,
    limit: world.charsMax,
    weight: () => 1,
    shell: (room) => roomWithMembers(room, numbers, none),
    part: (room) => {
      const members = listPart(room.members.map(memberElement), { depth: 2, limit: world.charsMax, keep: "first" });
      return { wanted: members.wanted, cut: (max) => roomWithMembers(room, numbers, members.cut(max)) };
    },
  });
