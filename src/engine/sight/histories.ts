import { historyHeight, historyWindowId } from "../../base/prompt/room.ts";
import type { RoomView, WindowChange } from "../../base/prompt/types.ts";
import { clamp } from "../../base/prompt/viewport.ts";
import type { Past } from "../../domain/tables/scrollback.ts";
import type { Seat } from "../../domain/tables/windows.ts";
import { timelineEntry } from "./timeline.ts";

/** Events that the window on a history shows when it is maximized. */
const maximizedHeight = 200;

/** Returns the rooms with their histories as they were scrolled: one statement for each that was. */
export const scrollHistories = (
  past: Past,
  seat: Seat,
  rooms: readonly RoomView[],
  changes: ReadonlyMap<string, WindowChange>,
): Promise<RoomView[]> =>
  Promise.all(
    rooms.map(async (room) => {
      const change = room.isClosed ? undefined : changes.get(historyWindowId(room.roomId));
      if (!change) return room;
      const { state, top, height = historyHeight } = change;
      const lines = room.historyLines;
      const count = state === "maximized" ? maximizedHeight : height;
      const bottom = top === undefined ? lines : Math.min(lines, clamp({ top, height: count }, lines).top + count - 1);
      if (bottom === lines && count <= room.history.length) return { ...room, historyWindow: change };
      const events = await past.lines(seat, { roomId: room.roomId, bottom, count });
      return { ...room, historyWindow: change, historyBottom: bottom, history: events.map(timelineEntry) };
    }),
  );
