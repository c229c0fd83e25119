import type { Events, StoredEvent } from "../database/events.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Effects } from "../database/routing.ts";
import { digest, type EventId } from "../lib/ids.ts";
import { isDraft } from "../matrix/draft.ts";

/** An agent's draft is shown to no agent. An edit that comes after it was taken back is taken back as well. */
export async function judgeDraft(event: StoredEvent, events: Events): Promise<Effects> {
  const draft = event.replaces === null ? undefined : await events.find(event.replaces);
  return draft && !isDraft(draft.content) ? { outbox: [withdrawalOfEdit(event, event.eventId)] } : {};
}

/** What takes back an edit that was on its way while the draft was taken back. */
export const withdrawalOfEdit = ({ roomId, sender }: StoredEvent, edit: EventId): OutboxDraft => ({
  key: digest("edit of a draft", edit),
  roomId,
  sender,
  kind: "withdrawal",
  content: { "m.relates_to": { event_id: edit } },
});
