import { boxPart } from "./box-part.ts";
import type { Shown } from "./list-part.ts";
import type { Part } from "./part.ts";
import { closedRoom, openRoom, roomLists } from "./room.ts";
import { share } from "./share.ts";
import { timelineWriter } from "./timeline.ts";
import type { RoomView, World } from "./types.ts";

const none: Shown = { elements: [], reach: 0, leftOut: 0 };

/** Rooms beside the conversation's own: one that speaks gets more, up to eleven times what a silent one does. */
export const otherRoomsPart = (rooms: readonly RoomView[], world: World, limit: number): Part<Shown> =>
  boxPart(rooms, {
    depth: 2,
    limit,
    weight: (room) => 1 + Math.min(10, room.unread),
    shell: (room) =>
      room.isClosed
        ? closedRoom(room, world)
        : openRoom(room, world, { members: none, history: none, newEvents: none }),
    part: (room) => {
      if (room.isClosed) return { wanted: 0, cut: () => closedRoom(room, world) };
      const { members, history, newEvents } = roomLists(room, timelineWriter(world), limit);
      const wants = [members.wanted, history.wanted, newEvents.wanted];
      return {
        wanted: wants.reduce((total, want) => total + want, 0),
        cut: (max) => {
          const [forMembers = 0, forHistory = 0, forNewEvents = 0] = share(wants, max);
          return openRoom(room, world, {
            members: members.cut(forMembers),
            history: history.cut(forHistory),
            newEvents: newEvents.cut(forNewEvents),
          });
        },
      };
    },
  });
