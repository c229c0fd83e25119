import type { OutboxDraft } from "../database/outbox.ts";
import type { RoomId } from "../lib/ids.ts";
import type { ThreadPlace } from "../matrix/relation.ts";
import type { Agent } from "./agent.ts";

/** Where an answer is to be seen before it is whole. */
export interface DraftPlace {
  readonly agent: Agent;
  readonly roomId: RoomId;
  readonly thread: ThreadPlace | undefined;
  readonly turn: { readonly id: number; readonly epoch: number };
  /** The same for the same answer, also after a death. */
  readonly key: string;
}

/** An answer that people see while the model writes it. Nothing depends on it: what goes wrong is left out. */
export interface Draft {
  /** The text so far, which is asked for when it is shown; an empty one is not. */
  write(text: () => string): void;
  /** Shows nothing more. What takes away all that was shown belongs to what is sent instead of it, behind that. */
  end(): Promise<readonly OutboxDraft[]>;
  /** The same where nothing is sent instead. Never throws. */
  withdraw(): Promise<void>;
}

/** What takes a draft back; see `closeTurn`, which makes the same. */
export const withdrawalOf = ({ key, roomId, sender }: Pick<OutboxDraft, "key" | "roomId" | "sender">): OutboxDraft => ({
  key: `${key}.withdrawn`,
  roomId,
  sender,
  kind: "withdrawal",
  content: {},
  about: key,
});
