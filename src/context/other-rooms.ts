import type { Element } from "../lmml/element.ts";
import type { Shown } from "./list-part.ts";
import { level, sizeAt } from "./measure.ts";
import type { Part } from "./part.ts";
import { closedRoom, openRoom, roomLists } from "./room.ts";
import type { RoomView, World } from "./types.ts";

const depth = 2;
const none: Shown = { elements: [], reach: 0, leftOut: 0 };

const shell = (room: RoomView, world: World): Element =>
  room.closed ? closedRoom(room, world) : openRoom(room, world, { members: none, history: none, newEvents: none });

const roomPart = (room: RoomView, world: World, limit: number): Part<Element> => {
  if (room.closed) return { wanted: 0, cut: () => closedRoom(room, world) };
  const { members, history, newEvents } = roomLists(room, world.serverName, limit);
  const wants = [members.wanted, history.wanted, newEvents.wanted];
  const cut = (max: number) => {
    const most = level(wants, max);
    return openRoom(room, world, {
      members: members.cut(most),
      history: history.cut(most),
      newEvents: newEvents.cut(most),
    });
  };
  return { wanted: members.wanted + history.wanted + newEvents.wanted, cut };
};

/**
 * Rooms beside the conversation's own: first that each of them is there, as many as fit, then what happened in them,
 * all alike. Nothing is measured beyond `limit` characters.
 */
export const otherRoomsPart = (rooms: readonly RoomView[], world: World, limit: number): Part<Shown> => {
  const leasts: number[] = [];
  let asked = 0;
  for (const room of rooms) {
    if (asked > limit) break;
    const least = sizeAt(shell(room, world), depth);
    leasts.push(least);
    asked += least;
  }
  const parts: Part<Element>[] = [];
  for (const room of rooms) {
    if (asked > limit) break;
    const part = roomPart(room, world, limit);
    parts.push(part);
    asked += part.wanted;
  }

  const cut = (max: number): Shown => {
    let left = max;
    let count = 0;
    for (const least of leasts) {
      if (least > left) break;
      left -= least;
      count += 1;
    }
    const most = level(
      parts.slice(0, count).map((part) => part.wanted),
      left,
    );
    const elements = rooms.slice(0, count).map((room, index) => parts[index]?.cut(most) ?? shell(room, world));
    return { elements, reach: count, leftOut: rooms.length - count };
  };
  return { wanted: Math.min(limit, asked), cut };
};
