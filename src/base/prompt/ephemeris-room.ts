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

/** The agent's record of itself as a room of its own: earlier turns in its window, the running one as new events. */
export const ephemerisRoom = (
  { serverName, agent, ephemeris, ephemerisLines = 0, ephemerisWindow, turn }: World,
  shown: { readonly ephemeris: Shown; readonly turn: Shown },
): Element => {
  const systemId = clip(serverName);
  const userId = clip(agent.userId);
  const lines = Math.max(ephemeris.length, ephemerisLines);
  const older = lines - ephemeris.length;
  const chars = older > 0 ? undefined : ephemeris.reduce((sum, entry) => sum + textChars(entry), 0);
  const leftOut = shown.ephemeris.leftOut + (ephemerisWindow?.state === "minimized" ? 0 : older);
  const part = { ...shown.ephemeris, leftOut };
  const window = historyWindow("ephemeris", "ephemeris", { lines, bottom: lines, chars }, part, ephemerisWindow);
  const whole = { topLineNumber: undefined, bottomLineNumber: undefined };
  return element("room", { systemId, roomId: "ephemeris", roomName: "", loggedInAs: userId }, [
    element("roomMember", { userId, you: true }),
    element("window", leftOut > 0 ? window : { ...window, ...whole }, [
      ...(shown.ephemeris.above ?? []),
      ...shown.ephemeris.elements,
    ]),
    turnEvents(turn, shown.turn),
    element("roomFooter", { systemId, roomId: "ephemeris" }),
  ]);
};

/** Room of the running turn alone, where earlier thoughts stand in a log. */
export const turnRoom = ({ serverName, agent, turn }: World, shown: Shown): Element =>
  element("room", { systemId: clip(serverName), roomId: "ephemeris", roomName: "", loggedInAs: clip(agent.userId) }, [
    turnEvents(turn, shown),
  ]);

const turnEvents = ({ at, before, reason, id }: World["turn"], shown: Shown): Element =>
  element("newEvents", { eventsLeftOut: shown.leftOut > 0 ? shown.leftOut : undefined }, [
    element("timestamp", {
      value: eventTime(at),
      wakeReason: reason,
      turnId: id,
      secondsSinceLastTurn: before && Math.floor((at.getTime() - before.getTime()) / 1_000),
    }),
    ...shown.elements,
  ]);
