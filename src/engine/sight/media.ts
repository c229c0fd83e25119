import type { EventId } from "../../base/lib/ids.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import { timelineEntry } from "./timeline.ts";

/** Files that came with the events of the conversation's room. */
export interface CarriedMedia {
  readonly images: readonly {
    readonly eventId: EventId;
    readonly path: string;
    /** True if it came with something that the agent has not seen before, or that such a message answers. */
    readonly isFresh: boolean;
  }[];
  /** Events of this turn whose files are still being fetched. */
  readonly pending: readonly EventId[];
}

/** @param isNew whether an event is part of what the turn shows for the first time */
export function mediaOf(events: readonly StoredEvent[], isNew: (event: StoredEvent) => boolean): CarriedMedia {
  const news = events.filter(isNew);
  const meant = new Set(news.flatMap((event) => [event.eventId, repliedTo(event) ?? event.eventId]));
  return {
    images: events.flatMap(({ eventId, media }) =>
      media?.state === "kept" && media.width !== undefined
        ? [{ eventId, path: media.path, isFresh: meant.has(eventId) }]
        : [],
    ),
    pending: news.filter(({ media }) => media?.state === "pending").map(({ eventId }) => eventId),
  };
}

function repliedTo(event: StoredEvent): EventId | undefined {
  const entry = timelineEntry(event);
  return entry.kind === "message" ? entry.replyTo : undefined;
}
