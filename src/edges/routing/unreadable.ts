import { digest } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import { isServed } from "./encrypted.ts";
import type { Throttle } from "./throttle.ts";

interface Parts {
  readonly rights: Pick<Rights, "of">;
  readonly throttle: Pick<Throttle, "admitTelling">;
}

/** One of us to whom something is said: the bot, or an agent. */
export type Teller = Pick<Agent, "userId"> & Partial<Pick<Agent, "pausedAt">>;

/**
 * Tells a person that their message cannot be stored, and so not be read: once for a while in a room, and only where they
 * would be answered.
 * @param meant finds those of us to whom it is said
 */
export async function tellUnreadable(
  { content, eventId, roomId, sender }: StoredEvent,
  room: RoomContext,
  meant: () => Promise<readonly Teller[]>,
  { rights, throttle }: Parts,
): Promise<OutboxDraft[]> {
  if (content.msgtype === "m.notice") return [];
  const isClosed = room.state["m.room.encryption"] !== undefined && !isServed(room);
  if (isClosed || !includesLevel(await rights.of(sender), "chat")) return [];
  const speaker = (await meant()).find(({ pausedAt = null }) => pausedAt === null);
  if (!speaker || !throttle.admitTelling(roomId)) return [];
  const text =
    "I cannot read your message: something in it is broken, such as a character that no text may have, or it is far too long. Nothing follows from it. Please write it again in plain words.";
  return utter({
    sender: speaker.userId,
    roomId,
    text,
    replyTo: eventId,
    isNotice: true,
    key: digest("unreadable", eventId),
  });
}
