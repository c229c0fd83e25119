import { isObject } from "../../base/lib/json.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";

/** Gives a message the text of its newest edit. Only edits by the sender of what they edit count. */
export async function applyEdits(events: Events, original: StoredEvent): Promise<void> {
  const content = (await events.editOf(original))?.content["m.new_content"];
  if (!isObject(content)) return;
  // Where the message stands (thread, reply) is the original's business.
  const relation = original.content["m.relates_to"];
  const edited = { ...content, ...(relation !== undefined && { "m.relates_to": relation }) };
  await events.applyEdit(original.eventId, edited as never);
}

/** True if the sender of an event that says so may change the message. */
export const isEditOf = ({ sender, roomId }: StoredEvent, original: StoredEvent): boolean =>
  original.sender === sender && original.roomId === roomId;

/** Takes a redacted edit out of the message again: an earlier edit counts, or what it said before any. Returns it. */
export async function takeBackEdit(events: Events, edit: StoredEvent): Promise<StoredEvent | undefined> {
  const original = edit.replaces === null ? undefined : await events.find(edit.replaces);
  if (!original || !isEditOf(edit, original)) return undefined;
  await events.unedit(original.eventId);
  await applyEdits(events, original);
  return original;
}
