import { agentName } from "../../adapters/matrix/message.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { cannotRead, plainTextNotice } from "./notices.ts";
import type { Throttle } from "./throttle.ts";

interface Parts {
  readonly directory: Pick<AgentDirectory, "recent">;
  readonly rooms: Pick<Rooms, "isEncrypted">;
  readonly rights: Pick<Rights, "of">;
  readonly throttle: Pick<Throttle, "admit">;
  readonly serverName: string;
  readonly botUserId: UserId;
}

/** Notice of an agent or the bot that joins an encrypted room; its join has just told what the room is like. */
export async function tellOnJoin(event: StoredEvent, parts: Parts): Promise<OutboxDraft[]> {
  const userId = event.stateKey as UserId;
  const name = agentName(userId, parts.serverName);
  const isOurs = userId === parts.botUserId || name !== undefined;
  if (!isOurs || readMember(event.content)?.membership !== "join") return [];
  if (!(await parts.rooms.isEncrypted(event.roomId))) return [];
  if (name !== undefined && !(await parts.directory.recent(name))) return [];
  return cannotRead([{ userId }], event);
}

/**
 * Answer to what a person says without encryption where all is encrypted.
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
