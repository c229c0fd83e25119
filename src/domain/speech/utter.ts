import { messageContent, splitText } from "../../adapters/matrix/markdown.ts";
import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import { shownTurnMark } from "../../adapters/matrix/shown-turn.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { OutboxDraft } from "../tables/outbox.ts";

/** Longer texts are cut into several messages; more than `partsMost` of them become a file. */
const partLength = 16_000;
const partsMost = 5;

export interface Utterance {
  readonly sender: UserId;
  readonly roomId: RoomId;
  /** Markdown. */
  readonly text: string;
  readonly thread?: ThreadPlace | undefined;
  readonly replyTo?: EventId | undefined;
  /** People who may be mentioned: other ids in the text notify nobody. */
  readonly members?: readonly UserId[];
  /** Does not ask for attention, and wakes no bot: m.notice. */
  readonly isNotice?: boolean;
  /** Unique for what is said. */
  readonly key: string;
}

/** Something said, as rows of the outbox. */
export function utter(utterance: Utterance): OutboxDraft[] {
  const { sender, roomId, key } = utterance;
  const parts = splitText(utterance.text, partLength);
  if (parts.length > partsMost) return [fileDraft({ ...utterance, name: "message.md" })];
  return parts.map((markdown, index) => {
    const partKey = index === 0 ? key : `${key}.${index}`;
    const content = messageContent({
      markdown,
      thread: utterance.thread,
      replyTo: index === 0 ? utterance.replyTo : undefined,
      members: utterance.members ?? [],
      isNotice: utterance.isNotice ?? false,
      key: partKey,
    });
    return { key: partKey, roomId, sender, kind: "message", content };
  });
}

/** A text that is sent as a file. */
export function fileDraft(
  file: Pick<Utterance, "sender" | "roomId" | "text" | "thread" | "key"> &
    Pick<OutboxDraft, "shows"> & { readonly name: string; readonly contentType?: string },
): OutboxDraft {
  const { contentType, key, name, roomId, sender, shows, text, thread } = file;
  return {
    key,
    roomId,
    sender,
    kind: "file",
    content: {
      "org.clevernet.key": key,
      name,
      text,
      ...(contentType !== undefined && { contentType }),
      thread: thread ? { ...thread } : null,
      ...(shows && shownTurnMark),
    },
    ...(shows && { shows }),
  };
}
