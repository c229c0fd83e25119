import type { Events, StoredEvent } from "../database/events.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Effects } from "../database/routing.ts";
import { digest, type EventId } from "../lib/ids.ts";
import { isDraft } from "../matrix/draft.ts";

/** An agent's draft is shown to no agent. An edit that comes after it was taken back is taken back as well. */
export async function judgeDraft(event: StoredEvent, events: Events): Promise<Effects> {
  const draft = event.replaces === null ? undefined : await events.find(event.replaces);
  return draft && !isDraft(draft.content) ? { outbox: [withdrawalOf(event, event.eventId)] } : {};
}

/** A draft is taken back: so are the edits that were on their way meanwhile. */
export async function takeBackEdits(draft: StoredEvent, events: Events): Promise<OutboxDraft[]> {
  return (await events.editsOf(draft)).map((edit) => withdrawalOf(draft, edit));
}

const withdrawalOf = ({ roomId, sender }: StoredEvent, edit: EventId): OutboxDraft => ({
  key: digest("edit of a draft", edit),
  roomId,
  sender,
  kind: "withdrawal",
  content: { "m.relates_to": { event_id: edit } },
});
