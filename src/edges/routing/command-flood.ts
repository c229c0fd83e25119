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
  { eventId, roomId, sender }: StoredEvent,
  { botJoined }: RoomContext,
  [agent]: readonly Agent[],
  { botUserId, rights, throttle }: Parts,
): Promise<OutboxDraft[] | undefined> {
  // A person who may not even talk here commands nothing, and is told that.
  if (!includesLevel(await rights.of(sender), "chat")) return undefined;
  const admission = throttle.admitCommand(sender);
  if (admission === "admitted") return undefined;
  const by = botJoined ? botUserId : agent?.userId;
  if (admission === "refused" || by === undefined) return [];
  const text =
    "Commands come faster than they may be carried out: this one is left out, and so are those that follow at once. Write them again in a minute.";
  return utter({ sender: by, roomId, text, notice: true, key: digest("too many commands", eventId) });
}
