import type { Agent } from "../agent/agent.ts";
import { includesLevel } from "../agent/permissions.ts";
import type { Rights } from "../agent/rights.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import { digest, type RoomId, type UserId } from "../lib/ids.ts";

export interface Invite {
  readonly roomId: RoomId;
  readonly agent: Agent;
  readonly inviter: UserId | undefined;
  /** The same for the same invite. */
  readonly key: string;
  /** A room of the bridge's own that agents stay out of. */
  readonly offLimits: boolean;
}

/** Whether an invite is accepted, and if not, the reason that the inviter is told. */
export async function answerInvite(invite: Invite, rights: Rights): Promise<OutboxDraft> {
  const { agent, roomId } = invite;
  const reason = await reasonAgainst(invite, rights);
  const draft = { key: digest("invite", agent.userId, roomId, invite.key), roomId, sender: agent.userId };
  return reason === undefined
    ? { ...draft, kind: "join", content: {} }
    : { ...draft, kind: "leave", content: { reason } };
}

async function reasonAgainst({ agent, inviter, offLimits }: Invite, rights: Rights): Promise<string | undefined> {
  if (offLimits) return "Agents do not enter rooms that show what agents think.";
  if (!agent.settings.autoJoinInvites) return `${agent.displayName} does not accept invitations.`;
  if (inviter === undefined) return "It is not known who sent this invitation.";
  const level = await rights.of(inviter);
  if (!includesLevel(level, "chat")) {
    return `${inviter} has no permission to talk to ${agent.displayName}. Those who run this bridge can give it ("chat" or more).`;
  }
  return undefined;
}
