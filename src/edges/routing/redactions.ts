import { isDraft } from "../../adapters/matrix/draft.ts";
import { powerOf, readPowerLevels } from "../../adapters/matrix/state.ts";
import { digest, type UserId } from "../../base/lib/ids.ts";
import { printsOfEvent } from "../../domain/memory/forget.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { ShownTurn } from "../../domain/tables/redact-event.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Approvals } from "../../engine/operations/approvals.ts";
import { withdrawalOfEdit } from "./drafts.ts";
import { takeBackEdit } from "./edits.ts";
import type { KindOf } from "./project.ts";

interface Parts {
  readonly approvals: Pick<Approvals, "withdraw">;
  readonly events: Events;
  readonly kindOf: KindOf;
}

/** Takes away what the redaction is about, where its sender may. Returns what is to be sent for it. */
export async function redact(redaction: StoredEvent, room: RoomContext, parts: Parts): Promise<OutboxDraft[]> {
  const { approvals, events, kindOf } = parts;
  if (redaction.redacts === null) return [];
  const target = await events.find(redaction.redacts);
  if (!target || target.roomId !== redaction.roomId) return [];
  if (target.sender !== redaction.sender && !mayRedact(room, redaction.sender)) return [];
  const { edits, shown } = await events.redact(target.eventId, await printsTakenBy(redaction, target, parts));
  const original = await takeBackEdit(events, target);
  await approvals.withdraw(target.eventId, "taken back");
  if (original) await approvals.withdraw(original.eventId, "edited");
  const isOurs = kindOf(target.sender) === "agent" && isDraft(target.content);
  return [...(isOurs ? edits.map((edit) => withdrawalOfEdit(target, edit)) : []), ...shown.map(takeBack)];
}

/** Redacts an event that its redactions have overtaken. */
export async function redactLate(event: StoredEvent, room: RoomContext, parts: Parts): Promise<void> {
  for (const redaction of await parts.events.redactionsOf(event)) await redact(redaction, room, parts);
}

export const takenBackBecause = "Something in it was redacted.";

/** Takes back a message of ours that showed something, whether it is sent already or on its way. */
export const takeBack = ({ key, roomId, sender }: ShownTurn): OutboxDraft => ({
  key: digest("taken back", key),
  roomId,
  sender,
  kind: "withdrawal",
  content: { reason: takenBackBecause },
  about: key,
});

/** Fingerprints of the words that a person takes away; what agents take back of their own (drafts) takes no words. */
async function printsTakenBy(
  redaction: StoredEvent,
  target: StoredEvent,
  { events, kindOf }: Parts,
): Promise<string[]> {
  if (kindOf(redaction.sender) !== "human") return [];
  return printsOfEvent(events, target);
}

/** True if somebody may take away others' events. */
function mayRedact(room: RoomContext, userId: UserId): boolean {
  const levels = readPowerLevels(room.state["m.room.power_levels"] ?? {});
  return room.creators.includes(userId) || powerOf(levels, userId) >= levels.redact;
}
