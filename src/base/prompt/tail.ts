import { type Element, element } from "../lmml/element.ts";
import { clockTime } from "./lean.ts";
import type { Shown } from "./list-part.ts";
import type { World } from "./types.ts";

/** Says when and why the turn has begun, and what was done in it so far, where earlier turns stand in a log. */
export const turnMark = ({ turn, timeZone }: World, shown: Shown): Element => {
  const { at, before, id, quietFor, reason } = turn;
  const timestamp = element("timestamp", {
    value: clockTime(at, timeZone).minute,
    wakeReason: reason,
    turnId: id,
    secondsSinceLastTurn: before && Math.floor((at.getTime() - before.getTime()) / 1_000),
    quietFor,
  });
  const eventsLeftOut = shown.leftOut > 0 ? shown.leftOut : undefined;
  return element("newEvents", { eventsLeftOut }, [timestamp, ...shown.elements]);
};
