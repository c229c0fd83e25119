import { agentName } from "../../adapters/matrix/message.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import { answerInvite } from "./invite.ts";

/** Somebody turns to the bridge bot; `key` is the same for the same event. */
interface Approach {
  readonly roomId: RoomId;
  readonly by: UserId;
  readonly key: string;
}

/** The bridge bot among people. */
export interface Bot {
  onInvite(approach: Approach): Promise<OutboxDraft[]>;
  /** Something that is no command, where no agent is. */
  onMessage(approach: Approach): Promise<OutboxDraft[]>;
  /** Somebody invites an agent that does not exist. */
  onUnknownAgent(name: AgentName, approach: Approach): Promise<OutboxDraft[]>;
  /** Somebody without the permission turns to an agent. */
  onClosedDoor(approach: Approach): Promise<OutboxDraft[]>;
}

interface Parts {
  readonly bot: Bot;
  readonly botUserId: UserId;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly rights: Rights;
  readonly serverName: string;
}

export const approachOf = (event: StoredEvent): Approach => ({
  roomId: event.roomId,
  by: event.sender,
  key: event.eventId,
});

/**
 * Answers an invitation of the bot, of an agent, or of an agent that does not exist, unless it was taken back since;
 * other events say nothing to us.
 */
export async function answerMembership(event: StoredEvent, room: RoomContext, parts: Parts): Promise<OutboxDraft[]> {
  const { bot, botUserId, directory, events, rights, serverName } = parts;
  if (event.type !== "m.room.member" || readMember(event.content)?.membership !== "invite") return [];
  const userId = event.stateKey as UserId;
  const name = agentName(userId, serverName);
  if ((userId !== botUserId && name === undefined) || (await events.isOutdated(event))) return [];
  if (name === undefined) return bot.onInvite(approachOf(event));
  const agent = await directory.find(name);
  if (!agent) return bot.onUnknownAgent(name, approachOf(event));
  const isOffLimits = room.kind !== "chat";
  const invite = { roomId: event.roomId, agent, inviter: event.sender, key: event.eventId, isOffLimits };
  const isClosed = !isOffLimits && event.sender !== botUserId && !includesLevel(await rights.of(event.sender), "chat");
  return [await answerInvite(invite, parts), ...(isClosed ? await bot.onClosedDoor(approachOf(event)) : [])];
}
