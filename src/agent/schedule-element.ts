import { clip } from "../context/measure.ts";
import { localTime } from "../context/time.ts";
import type { Schedule } from "../database/schedules.ts";
import { type Element, element } from "../lmml/element.ts";

/** A schedule as agents and people are shown it. */
export const scheduleElement = ({ id, cron, madeBy, nextAt, taint, text, timeZone }: Schedule): Element =>
  element(
    "schedule",
    {
      id,
      next: localTime(nextAt, timeZone),
      cron: cron ?? undefined,
      timeZone,
      madeBy: clip(madeBy),
      tainted: taint.length > 0,
    },
    text,
  );
