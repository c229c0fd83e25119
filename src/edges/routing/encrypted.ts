import { agentName } from "../../adapters/matrix/message.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { isEncrypted } from "../../domain/speech/speaking.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { cannotRead, plainTextNotice } from "./notices.ts";
import type { Throttle } from "./throttle.ts";

interface Parts {
  readonly directory: Pick<AgentDirectory, "recent">;
  readonly rooms: Pick<Rooms, "context">;
  readonly rights: Pick<Rights, "of">;
  readonly throttle: Pick<Throttle, "admit">;
  readonly serverName: string;
}

/** Notice of an agent that joins an encrypted room; its join has just told what the room is like. */
export async function tellOnJoin(event: StoredEvent, parts: Parts): Promise<OutboxDraft[]> {
  const name = agentName(event.stateKey as UserId, parts.serverName);
  if (name === undefined || readMember(event.content)?.membership !== "join") return [];
  if (!(await isEncrypted(event.roomId, parts.rooms))) return [];
  const agent = await parts.directory.recent(name);
  return agent ? cannotRead([agent], event) : [];
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
