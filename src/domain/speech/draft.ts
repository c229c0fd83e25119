import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../agents/agent.ts";
import type { OutboxDraft } from "../tables/outbox.ts";

/** Place in which an answer is shown before it is whole. */
export interface DraftPlace {
  readonly agent: Agent;
  readonly roomId: RoomId;
  readonly thread: ThreadPlace | undefined;
  readonly turn: { readonly id: number; readonly epoch: number };
  /** Equal for one answer, also after a death of the process. */
  readonly key: string;
  /** For whom the step was rendered, and from where; see `Hearing`. */
  readonly audience: readonly UserId[];
  readonly sources: readonly RoomId[];
}

/** An answer that people see while the model writes it. Nothing depends on it: what goes wrong is left out. */
export interface Draft {
  /** The text so far, which is asked for when it is shown; an empty one is not. */
  write(text: () => string): void;
  /** Shows nothing more. What takes away all that was shown belongs to what is sent instead of it, behind that. */
  end(): Promise<readonly OutboxDraft[]>;
  /** Takes the draft back where nothing is sent instead. Never throws. */
  withdraw(): Promise<void>;
}

/** Makes the row that takes a draft back; see `closeTurn`, which makes an equal one. */
export const withdrawalOf = ({ key, roomId, sender }: Pick<OutboxDraft, "key" | "roomId" | "sender">): OutboxDraft => ({
  key: `${key}.withdrawn`,
  roomId,
  sender,
  kind: "withdrawal",
  content: {},
  about: key,
});
