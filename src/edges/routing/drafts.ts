import { isDraft } from "../../adapters/matrix/draft.ts";
import { digest, type EventId } from "../../base/lib/ids.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";

/** An agent's draft is shown to no agent. An edit that comes after it was taken back is taken back as well. */
export async function judgeDraft(event: StoredEvent, events: Events): Promise<Effects> {
  const draft = event.replaces === null ? undefined : await events.find(event.replaces);
  return draft && !isDraft(draft.content) ? { outbox: [withdrawalOfEdit(event, event.eventId)] } : {};
}

/** Makes the row that takes back an edit that was on its way while the draft was taken back. */
export const withdrawalOfEdit = ({ roomId, sender }: StoredEvent, edit: EventId): OutboxDraft => ({
  key: digest("edit of a draft", edit),
  roomId,
  sender,
  kind: "withdrawal",
  content: { "m.relates_to": { event_id: edit } },
});
