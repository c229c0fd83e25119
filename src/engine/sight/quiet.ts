import type { EventId } from "../../base/lib/ids.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";

/** Shorter pauses are not told. */
const toldFromSeconds = 60;

/**
 * Time for which a room was quiet before the first of the new events, or before `at` where none are new. Undefined: not
 * for long, or nobody knows.
 */
export function quietBefore(here: readonly StoredEvent[], news: readonly EventId[], at: Date): string | undefined {
  const first = here.findIndex(({ eventId }) => news.includes(eventId));
  const [before, until] = first < 0 ? [here, at] : [here.slice(0, first), here[first]?.sentAt ?? at];
  const last = before.findLast(({ sentAt }) => sentAt <= until);
  const seconds = last ? (until.getTime() - last.sentAt.getTime()) / 1_000 : 0;
  return seconds < toldFromSeconds ? undefined : lengthText(seconds);
}
