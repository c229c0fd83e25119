import type { EventId, RoomId, UserId } from "../lib/ids.ts";

/** Something that was said, thought or done before, as memory gives it back. */
export interface RecalledView {
  readonly kind: "observation" | "action" | "thought" | "summary" | "fact" | "knowledge";
  readonly roomId: RoomId;
  readonly eventId: EventId | null;
  /** Number of its event in the room, if there is an event. */
  readonly number: number | null;
  readonly sender: UserId;
  readonly at: Date;
  readonly text: string;
  readonly score: number;
  /** Of knowledge: where it stands. */
  readonly passage?: PassageView | undefined;
}

/** Place of knowledge that an agent is shown. */
export interface PassageView {
  readonly source: string;
  readonly firstLine: number | null;
  readonly lastLine: number | null;
  /** Its file has changed since. */
  readonly isOutdated: boolean;
}
