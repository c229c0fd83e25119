import { readMessage } from "../../adapters/matrix/message.ts";
import { isObject } from "../../base/lib/json.ts";
import { memoryOfEvent } from "../../domain/memory/observe.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";

/**
 * Gives a message the text of its newest edit. Only edits by the sender of what they edit count.
 * @param now the edit that is judged now: where it came encrypted, its text is not stored yet
 */
export async function applyEdits(events: Events, original: StoredEvent, now?: StoredEvent): Promise<void> {
  const known = await events.editOf(original);
  const isRead = now?.isEncrypted && isEditOf(now, original) && now.position >= (known?.position ?? 0);
  // Of a redacted one there is no ciphertext any more.
  const isNewest = isRead && (await events.find(now.eventId))?.content.ciphertext !== undefined;
  const content = (isNewest ? now : known)?.content["m.new_content"];
  if (!isObject(content)) return;
  // Where the message stands (thread, reply) is the original's business.
  const relation = original.content["m.relates_to"];
  const edited = { ...content, ...(relation !== undefined && { "m.relates_to": relation }) };
  await events.applyEdit(original.eventId, edited as never, memoryOfEvent({ ...original, content: edited }));
}

/** True if the sender of an event that says so may change the message. */
export const isEditOf = ({ sender, roomId }: StoredEvent, original: StoredEvent): boolean =>
  original.sender === sender && original.roomId === roomId;

/** Takes a redacted edit out of the message again: an earlier edit counts, or what it said before any. Returns it. */
export async function takeBackEdit(events: Events, edit: StoredEvent): Promise<StoredEvent | undefined> {
  const original = edit.replaces === null ? undefined : await events.find(edit.replaces);
  if (!original || !isEditOf(edit, original)) return undefined;
  await events.unedit(original.eventId);
  const now = await events.find(original.eventId);
  if (now) await events.rememberAnew(original.eventId, memoryOfEvent(now));
  await applyEdits(events, original);
  return original;
}

/** Judges what was said before the agent came, where it could be read only later. */
export async function judgePast(event: StoredEvent, events: Events): Promise<Pick<Effects, "shownChars">> {
  const original = event.replaces === null ? undefined : await events.find(event.replaces);
  if (original) await applyEdits(events, original, event);
  return readMessage(event) && event.replaces === null ? { shownChars: lengthOf(event) } : {};
}

export const lengthOf = ({ content: { body } }: StoredEvent): number => (typeof body === "string" ? body.length : 0);
