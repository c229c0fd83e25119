import { digest, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Outbox, OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";

export interface Invite {
  readonly roomId: RoomId;
  readonly agent: Agent;
  readonly inviter: UserId | undefined;
  /** Equal for one invite. */
  readonly key: string;
  /** A room of the bridge's own that agents stay out of. */
  readonly isOffLimits: boolean;
}

interface Doorkeeper {
  readonly rights: Rights;
  /** Invites on behalf of admins. */
  readonly botUserId: UserId;
}

/** Decides if an invite is accepted, and if not, which reason the inviter is told. */
export async function answerInvite(invite: Invite, doorkeeper: Doorkeeper): Promise<OutboxDraft> {
  const { agent, roomId } = invite;
  const reason = await reasonAgainst(invite, doorkeeper);
  const draft = { key: digest("invite", agent.userId, roomId, invite.key), roomId, sender: agent.userId };
  return reason === undefined
    ? { ...draft, kind: "join", content: {} }
    : { ...draft, kind: "leave", content: { reason } };
}

async function reasonAgainst(
  { agent, inviter, isOffLimits }: Invite,
  { rights, botUserId }: Doorkeeper,
): Promise<string | undefined> {
  if (isOffLimits) return "Agents do not enter rooms in which they are watched or commanded.";
  if (inviter === botUserId) return undefined;
  if (!agent.settings.autoJoinInvites) return `${agent.displayName} does not accept invitations.`;
  if (inviter === undefined) return "It is not known who sent this invitation.";
  const level = await rights.of(inviter);
  if (!includesLevel(level, "chat")) {
    return `${inviter} has no permission to talk to ${agent.displayName}. Those who run this bridge can give it ("chat" or more).`;
  }
  return undefined;
}

/** Answers the invitations that were sent before the agent was there. Returns the rooms into which something is to be sent. */
export async function answerWaiting(
  agent: Agent,
  doorkeeper: Doorkeeper,
  database: { rooms: Rooms; outbox: Outbox },
): Promise<RoomId[]> {
  const waiting = await database.rooms.invitesOf(agent.userId);
  for (const { roomId, inviter, eventId } of waiting) {
    const { kind } = await database.rooms.context(roomId);
    const invite: Invite = { roomId, agent, inviter, key: eventId, isOffLimits: kind !== "chat" };
    await database.outbox.add([await answerInvite(invite, doorkeeper)]);
  }
  return waiting.map(({ roomId }) => roomId);
}
