import type { OutboxDraft } from "../database/outbox.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import { messageContent, splitText } from "../matrix/markdown.ts";

/** Longer texts are cut into several messages; more than `partsMost` of them become a file. */
const partLength = 16_000;
const partsMost = 5;

export interface Utterance {
  readonly sender: UserId;
  readonly roomId: RoomId;
  /** Markdown. */
  readonly text: string;
  readonly threadId?: EventId | undefined;
  readonly replyTo?: EventId | undefined;
  /** Who may be mentioned: ids in the text that are none of these notify nobody. */
  readonly members?: readonly UserId[];
  /** Does not ask for attention, and wakes no bot: m.notice. */
  readonly notice?: boolean;
  /** Unique for what is said. */
  readonly key: string;
}

/** Something said, as rows of the outbox. */
export function utter(utterance: Utterance): OutboxDraft[] {
  const { sender, roomId, key } = utterance;
  const parts = splitText(utterance.text, partLength);
  if (parts.length > partsMost) {
    const content = {
      "org.clevernet.key": key,
      name: "message.md",
      text: utterance.text,
      threadId: utterance.threadId ?? null,
    };
    return [{ key, roomId, sender, kind: "file", content }];
  }
  return parts.map((markdown, index) => {
    const partKey = index === 0 ? key : `${key}.${index}`;
    const content = messageContent({
      markdown,
      threadId: utterance.threadId,
      replyTo: index === 0 ? utterance.replyTo : undefined,
      members: utterance.members ?? [],
      notice: utterance.notice ?? false,
      key: partKey,
    });
    return { key: partKey, roomId, sender, kind: "message", content };
  });
}
