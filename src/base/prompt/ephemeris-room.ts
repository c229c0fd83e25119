import { type Element, element } from "../lmml/element.ts";
import { listPart, type Shown } from "./list-part.ts";
import { clip, textChars } from "./measure.ts";
import type { Part } from "./part.ts";
import { eventTime } from "./time.ts";
import type { World } from "./types.ts";
import { historyWindow, withQueries } from "./window.ts";

/** Entries of earlier turns. */
export const ephemerisPart = ({ ephemeris, ephemerisWindow: change }: World, limit: number): Part<Shown> => {
  if (change?.state === "minimized") return listPart([], { depth: 4, limit, keep: "last" });
  return withQueries(listPart(ephemeris, { depth: 4, limit, keep: "last" }), change?.queries ?? [], {
    depth: 4,
    limit,
  });
};

/** Window on earlier turns. */
export const ephemerisWindow = (
  { ephemeris, ephemerisLines = 0, ephemerisWindow: change }: World,
  shown: Shown,
): Element => {
  const lines = Math.max(ephemeris.length, ephemerisLines);
  const older = lines - ephemeris.length;
  const chars = older > 0 ? undefined : ephemeris.reduce((sum, entry) => sum + textChars(entry), 0);
  const leftOut = shown.leftOut + (change?.state === "minimized" ? 0 : older);
  const part = { ...shown, leftOut };
  const window = historyWindow(
    { windowId: "ephemeris", src: "ephemeris" },
    { lines, bottom: lines, chars },
    part,
    change,
  );
  const whole = { topLineNumber: undefined, bottomLineNumber: undefined };
  return element("window", leftOut > 0 ? window : { ...window, ...whole }, [...(shown.above ?? []), ...shown.elements]);
};

/** The agent's record of itself as a room of its own: earlier turns in its window, the running one as new events. */
export const ephemerisRoom = (world: World, shown: { readonly ephemeris: Shown; readonly turn: Shown }): Element => {
  const { serverName, agent, turn } = world;
  const systemId = clip(serverName);
  const userId = clip(agent.userId);
  return element("room", { systemId, roomId: "ephemeris", roomName: "", loggedInAs: userId }, [
    element("roomMember", { userId, you: true }),
    ephemerisWindow(world, shown.ephemeris),
    turnEvents(turn, shown.turn),
    element("roomFooter", { systemId, roomId: "ephemeris" }),
  ]);
};

const turnEvents = ({ at, before, quietFor, reason, id }: World["turn"], shown: Shown): Element =>
  element("newEvents", { eventsLeftOut: shown.leftOut > 0 ? shown.leftOut : undefined }, [
    element("timestamp", {
      value: eventTime(at),
      wakeReason: reason,
      turnId: id,
      secondsSinceLastTurn: before && Math.floor((at.getTime() - before.getTime()) / 1_000),
      quietFor,
    }),
    ...shown.elements,
  ]);
