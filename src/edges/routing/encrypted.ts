import { agentName } from "../../adapters/matrix/message.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { megolm } from "../../domain/tables/secrecy.ts";
import { cannotReadNotice, plainTextNotice } from "./notices.ts";
import type { Throttle } from "./throttle.ts";

interface Parts {
  readonly directory: Pick<AgentDirectory, "findRecent">;
  readonly rooms: Pick<Rooms, "context" | "isEncrypted" | "isUnwritable">;
  readonly rights: Pick<Rights, "of">;
  readonly throttle: Pick<Throttle, "admit">;
  readonly serverName: string;
  readonly botUserId: UserId;
}

/**
 * True if some agent is there who reads and writes as the room is encrypted.
 * @param change how it is encrypted from now on
 */
export const isServed = (
  { agents, state }: Pick<RoomContext, "agents" | "state">,
  change?: Pick<StoredEvent, "content">,
): boolean => {
  const { algorithm } = change?.content ?? state["m.room.encryption"] ?? {};
  const isKnown = (algorithm ?? megolm) === megolm;
  return isKnown && agents.some(({ membership }) => membership === "join");
};

/** Notice of an agent or the bot that joins a room that it cannot read; its join has just told what the room is like. */
export async function tellOnJoin(event: StoredEvent, parts: Parts): Promise<OutboxDraft[]> {
  const userId = event.stateKey as UserId;
  const name = agentName(userId, parts.serverName);
  if (readMember(event.content)?.membership !== "join") return [];
  if (name === undefined && userId !== parts.botUserId) return [];
  // The bot has no device, and speaks only where no agent does.
  const room = await parts.rooms.context(event.roomId);
  const isDeaf =
    name === undefined ? await parts.rooms.isEncrypted(event.roomId) : await parts.rooms.isUnwritable(event.roomId);
  if (!isDeaf || (name === undefined && isServed(room))) return [];
  if (name !== undefined && !(await parts.directory.findRecent(name))) return [];
  return cannotReadNotice([{ userId }], event);
}

/**
 * Answer to what a person says without encryption where nobody of ours can answer.
 * @param meant finds those of us to whom it is said
 */
export async function refusePlainText(
  event: StoredEvent,
  meant: () => Promise<readonly { readonly userId: UserId }[]>,
  { rights, throttle }: Parts,
): Promise<OutboxDraft[]> {
  if (!includesLevel(await rights.of(event.sender), "chat")) return [];
  const speakers = await meant();
  if (speakers.length === 0 || throttle.admit(event.sender, event.roomId) !== "admitted") return [];
  return speakers.flatMap((speaker) => plainTextNotice(speaker, event));
}
