import { messageContent } from "../../adapters/matrix/markdown.ts";
import { asEdit } from "../../adapters/matrix/relation.ts";
import type { Hearing } from "../tables/hearing.ts";
import type { OutboxDraft } from "../tables/outbox.ts";
import { type Utterance, utter } from "./utter.ts";

/** An edit holds its text four times, and homeservers refuse events over 64 KB. */
const editCharsMost = 4_000;

/** Result of a command while it grows: one message, which in the end becomes the answer. */
export interface Progress {
  /** The text so far, as Markdown, which is asked for when it is shown; and what it is made from. */
  show(text: () => string, hearing: Hearing): void;
  /** Shows nothing more. Returns the key of the message that the answer takes the place of; undefined where there is none. */
  end(): Promise<string | undefined>;
}

/** Says something, in place of what the message with this key said; as a message of its own where there is none. */
export function utterInstead(utterance: Utterance, instead: string | undefined): OutboxDraft[] {
  const { key, roomId, sender, text } = utterance;
  if (instead === undefined || text.length > editCharsMost) return utter(utterance);
  const { "org.clevernet.key": _, ...content } = messageContent({ markdown: text, isNotice: true, key });
  return [
    {
      key,
      roomId,
      sender,
      kind: "message",
      about: instead,
      content: {
        ...asEdit(content),
        "m.new_content": { ...content, "org.clevernet.key": instead },
        "org.clevernet.key": key,
      },
    },
  ];
}
