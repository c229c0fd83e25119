import { agentName } from "../../adapters/matrix/message.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";

/** For whom a wake acts, and which chain of agent turns it belongs to. */
interface Cause {
  readonly requester: UserId | undefined;
  readonly chain: string;
  readonly isByAgent: boolean;
}

interface CauseParts {
  readonly events: Pick<Events, "find">;
  readonly outbox: Pick<Outbox, "originOf">;
  readonly directory: Pick<AgentDirectory, "find">;
  readonly serverName: string;
}

/** Key of the outbox row that an event was sent from, where it is ours. */
export const sentKeyOf = ({ content: { "org.clevernet.key": key } }: StoredEvent): string | undefined =>
  typeof key === "string" ? key : undefined;

/** A human's message begins a chain; an agent's goes on with the one its turn belongs to. */
export async function causeOf(
  event: StoredEvent,
  isHuman: boolean,
  { directory, events, outbox, serverName }: CauseParts,
): Promise<Cause | undefined> {
  if (isHuman) return { requester: event.sender, chain: event.eventId, isByAgent: false };
  const key = sentKeyOf(event);
  const origin = key === undefined ? undefined : await outbox.originOf(key, event.sender);
  if (!origin?.chain) return undefined;
  const root = await events.find(origin.chain as EventId);
  const name = agentName(event.sender, serverName);
  const requester = root?.sender ?? origin.requester ?? (name && (await directory.find(name))?.owner);
  return { requester, chain: origin.chain, isByAgent: true };
}
