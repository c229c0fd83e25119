import type { Events, StoredEvent } from "../database/events.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { RoomContext } from "../database/room-context.ts";
import type { UserId } from "../lib/ids.ts";
import { isDraft } from "../matrix/draft.ts";
import { powerOf, readPowerLevels } from "../matrix/state.ts";
import { withdrawalOfEdit } from "./drafts.ts";
import { takeBackEdit } from "./edits.ts";
import type { KindOf } from "./project.ts";

interface Parts {
  readonly events: Events;
  readonly kindOf: KindOf;
}

/** Takes away what the redaction is about, where its sender may. Returns what is to be sent for it. */
export async function redact(
  redaction: StoredEvent,
  room: RoomContext,
  { events, kindOf }: Parts,
): Promise<OutboxDraft[]> {
  if (redaction.redacts === null) return [];
  const target = await events.find(redaction.redacts);
  if (!target || target.roomId !== redaction.roomId) return [];
  if (target.sender !== redaction.sender && !mayRedact(room, redaction.sender)) return [];
  const edits = await events.redact(target.eventId);
  await takeBackEdit(events, target);
  const isOurs = kindOf(target.sender) === "agent" && isDraft(target.content);
  return isOurs ? edits.map((edit) => withdrawalOfEdit(target, edit)) : [];
}

/** The same for an event that its redactions have overtaken. */
export async function redactLate(event: StoredEvent, room: RoomContext, parts: Parts): Promise<void> {
  for (const redaction of await parts.events.redactionsOf(event)) await redact(redaction, room, parts);
}

/** Whether somebody may take away others' events. */
function mayRedact(room: RoomContext, userId: UserId): boolean {
  const levels = readPowerLevels(room.state["m.room.power_levels"] ?? {});
  return room.creators.includes(userId) || powerOf(levels, userId) >= levels.redact;
}
