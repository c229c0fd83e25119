import type { RoomId } from "../lib/ids.ts";
import { type Element, element } from "../lmml/element.ts";
import { type ListPart, listPart, type Shown } from "./list-part.ts";
import { clip } from "./measure.ts";
import type { Part } from "./part.ts";
import { roomFooter } from "./recalled.ts";
import type { RoomMember, RoomView, TimelineEntry, World } from "./types.ts";
import { historyWindow, withQueries } from "./window.ts";

/** Events of the past that a history window shows, unless it was made larger or smaller. */
export const historyHeight = 50;
const nameChars = 100;

/** The lists of a room, as parts or as shown. */
export interface RoomLists<List, News = List> {
  readonly members: List;
  readonly history: List;
  readonly newEvents: News;
}

export const memberElement = ({ userId, isAdmin, isYou }: RoomMember): Element =>
  element("roomMember", { userId: clip(userId), admin: isAdmin, you: isYou });

/** Lists of a room that can be cut. `limit`: the most that each of its lists is ever given. */
export const roomLists = (
  room: Pick<RoomView, "members" | "history" | "newEvents" | "historyWindow">,
  write: (entry: TimelineEntry) => Element,
  limit: number,
): RoomLists<Part<Shown>, ListPart> => {
  const events = (entries: RoomView["history"]) => entries.map(write);
  const { state = "normal", height = historyHeight, queries = [] } = room.historyWindow ?? {};
  const lines = state === "minimized" ? 0 : state === "maximized" ? room.history.length : height;
  return {
    members: listPart(room.members.map(memberElement), { depth: 3, limit, keep: "first" }),
    history: withQueries(
      listPart(events(room.history.slice(Math.max(0, room.history.length - lines))), { depth: 5, limit, keep: "last" }),
      state === "minimized" ? [] : queries,
      { depth: 4, limit },
    ),
    newEvents: listPart(events(room.newEvents), { depth: 4, limit, keep: "last" }),
  };
};

/** Id of the window on the history of a room. */
export const historyWindowId = (roomId: RoomId): string => `room_${roomId.split(":")[0]}`;

/** `0` is not said. */
const some = (count: number): number | undefined => (count > 0 ? count : undefined);

/** Attributes that every room has. */
const roomAttributes = (room: RoomView, { serverName, agent }: World) => ({
  systemId: clip(serverName),
  roomId: clip(room.roomId),
  roomName: clip(room.name, nameChars),
  loggedInAs: clip(agent.userId),
  directMessage: room.isDirect,
});

/** Attributes of a room where what is around it says system and user. */
export const leanAttributes = ({ roomId, name, isDirect }: RoomView) => ({
  roomId: clip(roomId),
  roomName: clip(name, nameChars) || undefined,
  directMessage: isDirect,
});

/** The conversation's own room, with what is new in it, and its history where somebody moved its window. */
export const leanRoom = (
  room: RoomView,
  { history, newEvents, recalled }: Pick<RoomLists<Shown>, "history" | "newEvents"> & { readonly recalled?: Shown },
): Element => {
  const eventsLeftOut = some(room.unread - newEvents.elements.length);
  const isNew = newEvents.elements.length > 0 || eventsLeftOut !== undefined;
  return element("room", { roomId: clip(room.roomId) }, [
    room.historyWindow && historyElement(room, history),
    isNew ? element("newEvents", { eventsLeftOut }, newEvents.elements) : undefined,
    recalled && recalled.elements.length > 0 ? roomFooter({}, recalled) : undefined,
  ]);
};

/** Window on the history of a room. */
const historyElement = (room: RoomView, shown: Shown): Element => {
  const { historyLines: lines, historyChars: chars, historyBottom: bottom = lines, historyWindow: change } = room;
  return element(
    "window",
    historyWindow(
      { windowId: clip(historyWindowId(room.roomId), 64), src: clip(room.roomId) },
      { lines, chars, bottom },
      shown,
      change,
    ),
    [...(shown.above ?? []), change?.state === "minimized" ? undefined : element("content", {}, shown.elements)],
  );
};

/** A room that everybody in the audience may read. */
export const openRoom = (
  room: RoomView,
  world: World,
  shown: RoomLists<Shown> & { readonly recalled?: Shown },
): Element => {
  const attributes = roomAttributes(room, world);
  const { systemId, roomId, roomName } = attributes;
  return element(
    "room",
    {
      ...attributes,
      membersLeftOut: some(room.memberCount - shown.members.elements.length),
    },
    [
      ...shown.members.elements,
      historyElement(room, shown.history),
      element(
        "newEvents",
        { eventsLeftOut: some(room.unread - shown.newEvents.elements.length) },
        shown.newEvents.elements,
      ),
      roomFooter({ systemId, roomId, roomName }, shown.recalled),
    ],
  );
};

/** A room behind a wall: that it is there, and how much is unread in it. Its name is for those who may read it. */
export const closedRoom = (room: RoomView, world: World): Element => {
  const { directMessage: _, ...attributes } = roomAttributes(room, world);
  return element("room", { ...attributes, roomName: "", closed: true, unread: room.unread });
};
