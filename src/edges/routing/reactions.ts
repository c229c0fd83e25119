import { agentName, type Message } from "../../adapters/matrix/message.ts";
import { readReaction } from "../../adapters/matrix/reaction.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { KnowledgeBase } from "../../domain/memory/knowledge-base.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Events, PendingEvent } from "../../domain/tables/events.ts";
import type { Operations } from "../../domain/tables/operations.ts";
import { approveSign, denySign } from "../../engine/operations/approval-card.ts";
import type { Approvals, PersonsDecision } from "../../engine/operations/approvals.ts";
import { OfferAnswers } from "../../engine/operations/knowledge-offer.ts";
import type { TurnRunner } from "../../engine/turn/runner.ts";

const stopSign = "🛑";

export interface ReactionParts {
  readonly events: Events;
  readonly operations: Operations;
  readonly approvals: Approvals;
  readonly forTools: { readonly knowledge: Pick<KnowledgeBase, "offers"> };
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  readonly serverName: string;
  readonly rights: Rights;
  readonly runner: TurnRunner;
}

/**
 * Reactions and answers to an event of ours: ✅ and ❌ on a card decide what it asks, an answer to it denies it, ✅ on the
 * question below a summary keeps it, 🛑 on a message of an agent stops that agent. From a person who may not do it, they are like any other reaction or answer.
 */
export class Reactions {
  readonly #parts: ReactionParts;
  readonly #offers: OfferAnswers;

  constructor(parts: ReactionParts) {
    this.#parts = parts;
    this.#offers = new OfferAnswers({ ...parts, offers: parts.forTools.knowledge.offers });
  }

  /** A person's reaction. One that is taken back already counts for nothing. */
  async react(event: PendingEvent): Promise<void> {
    const reaction = readReaction(event.content);
    if (!reaction || event.isOvertaken) return;
    const sign = reaction.key.replaceAll(/[\uFE0E\uFE0F]/g, "");
    if (sign === stopSign) await this.#stop(event, reaction.target);
    if (sign === approveSign || sign === denySign) {
      const isTaken = await this.#decide(event, reaction.target, { isApproved: sign === approveSign });
      if (sign === approveSign && !isTaken) await this.#keep(event, reaction.target);
    }
  }

  /** A person's message. Returns whether it has denied something. */
  async reply(event: PendingEvent, { body, replyTo }: Message): Promise<boolean> {
    if (replyTo === undefined) return false;
    return this.#decide(event, replyTo, { isApproved: false, because: body });
  }

  async #decide(
    { roomId, sender: by }: PendingEvent,
    target: EventId,
    verdict: Pick<PersonsDecision, "isApproved" | "because">,
  ): Promise<boolean> {
    const operation = await this.#parts.operations.withCard(target);
    if (!operation || operation.cardRoom !== roomId) return false;
    return unlessRefused(this.#parts.approvals.decide(operation, { ...verdict, by, roomId }));
  }

  async #keep({ roomId, sender: by }: PendingEvent, target: EventId): Promise<void> {
    const offer = await this.#offers.find(target);
    if (offer?.roomId === roomId) await unlessRefused(this.#offers.accept(offer, by));
  }

  async #stop({ roomId, sender: by }: PendingEvent, target: EventId): Promise<void> {
    const { events, rights, runner, serverName } = this.#parts;
    const said = await events.find(target);
    const agent = said?.roomId === roomId ? agentName(said.sender, serverName) : undefined;
    if (agent === undefined) return;
    const stopped = runner.stopFor({ agent, roomId }, { userId: by, level: await rights.of(by) });
    await unlessRefused(stopped);
  }
}

/** True if it was done: the person may, and there was something to do. */
const unlessRefused = async (done: Promise<unknown>): Promise<boolean> => {
  try {
    await done;
    return true;
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
};
