import { type Element, element } from "../../base/lmml/element.ts";
import { clip } from "../../base/prompt/measure.ts";
import { localTime } from "../../base/prompt/time.ts";
import type { Schedule } from "../tables/schedules.ts";

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
