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
  { serverName, agent, ephemeris, ephemerisWindow, turn }: World,
  shown: { readonly ephemeris: Shown; readonly turn: Shown },
): Element => {
  const systemId = clip(serverName);
  const userId = clip(agent.userId);
  const lines = ephemeris.length;
  const size = { lines, bottom: lines, chars: ephemeris.reduce((chars, entry) => chars + textChars(entry), 0) };
  const window = historyWindow("ephemeris", "ephemeris", size, shown.ephemeris, ephemerisWindow);
  const whole = { topLineNumber: undefined, bottomLineNumber: undefined };
  return element("room", { systemId, roomId: "ephemeris", roomName: "", loggedInAs: userId }, [
    element("roomMember", { userId, you: true }),
    element("window", shown.ephemeris.leftOut > 0 ? window : { ...window, ...whole }, [
      ...(shown.ephemeris.above ?? []),
      ...shown.ephemeris.elements,
    ]),
    element("newEvents", { eventsLeftOut: shown.turn.leftOut > 0 ? shown.turn.leftOut : undefined }, [
      element("timestamp", { value: eventTime(turn.at), wakeReason: turn.reason, turnId: turn.id }),
      ...shown.turn.elements,
    ]),
    element("roomFooter", { systemId, roomId: "ephemeris" }),
  ]);
};
