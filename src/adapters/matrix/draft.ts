import { digest, type EventId, type RoomId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { idIn, listIn } from "./answer.ts";
import type { MatrixClient, Sender } from "./client.ts";
import { messageContent } from "./markdown.ts";
import { asEdit, type ThreadPlace, withTarget } from "./relation.ts";

/** More edits than a draft can have. */
const editsMost = 100;

/** By which programs know a draft and its edits: nobody is addressed by them, and no agent is shown them. */
const mark = { "org.clevernet.draft": true };
export const isDraft = (content: Readonly<Record<string, unknown>>): boolean => "org.clevernet.draft" in content;

/** An edit holds its text four times, and homeservers refuse events over 64 KB. */
const charsMost = 4_000;

const beginningOf = (text: string): string => (text.length > charsMost ? `${text.slice(0, charsMost)}…` : text);

/**
 * A Markdown text that is not whole yet; of a long one the beginning. It is an m.notice, which notifies nobody.
 * @param key unique for the draft, by which it is known again in the homeserver's echo
 */
export const draftContent = (text: string, thread: ThreadPlace | undefined, key: string) => ({
  ...messageContent({ markdown: beginningOf(text), thread, isNotice: true, key }),
  ...mark,
});

/** The draft `root` says this from now on. */
export const draftEdit = (root: EventId, text: string): Record<string, unknown> => {
  const { "org.clevernet.key": _, ...content } = messageContent({
    markdown: beginningOf(text),
    isNotice: true,
    key: "",
  });
  return { ...withTarget(asEdit(content), root), ...mark };
};

/**
 * Redacts an event, and before it its edits, which a homeserver leaves readable and tells nobody of afterwards. Safe to
 * repeat with the same `key`.
 */
export async function withdraw(
  client: MatrixClient,
  as: Sender,
  { roomId, eventId }: { readonly roomId: RoomId; readonly eventId: EventId },
  { key, reason = "This was a draft." }: { readonly key: string; readonly reason?: string | undefined },
): Promise<void> {
  const room = encodeURIComponent(roomId);
  const path = `/_matrix/client/v1/rooms/${room}/relations/${encodeURIComponent(eventId)}/m.replace`;
  const related = listIn(await client.request("GET", path, { as, query: { limit: editsMost } }), "chunk", path);
  const edits = related.filter(isObject).filter(({ sender }) => sender === as.userId);
  for (const id of [...edits.map(({ event_id }) => String(event_id)), eventId]) {
    const transaction = digest(key, id);
    const redaction = `/_matrix/client/v3/rooms/${room}/redact/${encodeURIComponent(id)}/${transaction}`;
    const redacted = await client.request("PUT", redaction, { as, body: { reason } });
    idIn(redacted, "event_id", "$", redaction);
  }
}
