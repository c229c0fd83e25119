import { digest, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Throttle } from "./throttle.ts";

interface Parts {
  readonly botUserId: UserId;
  readonly rights: Rights;
  readonly throttle: Throttle;
}

/** Answers a command that comes faster than is good, and is not even read; undefined where it may be carried out. */
export async function refuseFlood(
  event: StoredEvent,
  room: RoomContext,
  agentsHere: readonly Agent[],
  parts: Parts,
): Promise<OutboxDraft[] | undefined> {
  // A person who may not even talk here commands nothing, and is told that.
  if (!includesLevel(await parts.rights.of(event.sender), "chat")) return undefined;
  const admission = parts.throttle.admitCommand(event.sender);
  return admission === "admitted" ? undefined : tell(admission, event, speakerIn(room, agentsHere, parts));
}

/** Answers a command that would wake agents faster than the limits allow; undefined where it may wake them. */
export function refuseWaking(
  event: StoredEvent,
  room: RoomContext,
  agentsHere: readonly Agent[],
  parts: Pick<Parts, "botUserId" | "throttle">,
): OutboxDraft[] | undefined {
  const admission = parts.throttle.admitWakingCommand(event.sender, event.roomId);
  return admission === "admitted" ? undefined : tell(admission, event, speakerIn(room, agentsHere, parts));
}

const speakerIn = (
  { hasBotJoined }: RoomContext,
  [agent]: readonly Agent[],
  { botUserId }: Pick<Parts, "botUserId">,
): UserId | undefined => (hasBotJoined ? botUserId : agent?.userId);

function tell(
  admission: "refused" | "told",
  { eventId, roomId }: StoredEvent,
  sender: UserId | undefined,
): OutboxDraft[] {
  if (admission === "refused" || sender === undefined) return [];
  const text =
    "Commands come faster than they may be carried out: this one is left out, and so are those that follow at once. Write them again in a minute.";
  return utter({ sender, roomId, text, isNotice: true, key: digest("too many commands", eventId) });
}
