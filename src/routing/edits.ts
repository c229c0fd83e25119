import type { Events, StoredEvent } from "../database/events.ts";
import { isObject } from "../lib/json.ts";

/** Gives a message the text of its newest edit. Only edits by the sender of what they edit count. */
export async function applyEdits(events: Events, original: StoredEvent): Promise<void> {
  const content = (await events.editOf(original))?.content["m.new_content"];
  if (!isObject(content)) return;
  // Where the message stands (thread, reply) is the original's business.
  const relation = original.content["m.relates_to"];
  const edited = { ...content, ...(relation !== undefined && { "m.relates_to": relation }) };
  await events.applyEdit(original.eventId, edited as never);
}

/** Takes a redacted edit out of the message again: an earlier edit counts, or what it said before any. */
export async function takeBackEdit(events: Events, { replaces, sender, roomId }: StoredEvent): Promise<void> {
  const original = replaces === null ? undefined : await events.find(replaces);
  if (original?.sender !== sender || original.roomId !== roomId) return;
  await events.unedit(original.eventId);
  await applyEdits(events, original);
}
