import { UserError } from "../../base/lib/errors.ts";
import { digest, type EventId, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { KnowledgeEntry, KnowledgeOrigin } from "../../domain/tables/knowledge.ts";
import type { KnowledgeOffer, KnowledgeOffers } from "../../domain/tables/knowledge-offers.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { approveSign, editOfQuestion } from "./approval-card.ts";
import { quote } from "./shown-text.ts";
import type { ToolContext } from "./tool.ts";

/** True if people can be asked: there is a room, and those for whom it is done may have something kept. */
export const canOffer = ({ level, roomId }: Pick<ToolContext, "level" | "roomId">): boolean =>
  roomId !== HOME && includesLevel(level, "operate");

/**
 * Asks in the conversation's room if the agent shall keep a summary. A ✅ below the question says yes. A person who
 * commanded the summary sees it in the answer; otherwise it stands above the question.
 * @returns rows for the outbox, and the text of the summary: that of the first time, if the operation is run again
 */
export async function offerSummary(
  entry: KnowledgeEntry,
  origin: KnowledgeOrigin,
  { agent, by, files, key: operation, knowledge, roomId, thread }: ToolContext,
): Promise<{ readonly outbox: readonly OutboxDraft[]; readonly text: string }> {
  const key = digest("keep?", operation);
  const text = await knowledge.offers.add({ key, roomId, entry, origin });
  const file = origin.file && files.named(origin.file);
  const name = quote(file ?? origin.title);
  const asks = `**Shall I keep this summary of ${name} as knowledge?** ${approveSign} keeps it, for a day.`;
  const sender = agent.userId;
  const shown = by === "model" ? `${text}\n\n${asks}` : asks;
  const drafts = utter({ sender, roomId, text: shown, thread, isNotice: by === "person", key });
  const shows = origin.eventId === null ? {} : { shows: [origin.eventId] };
  const content = {
    "m.relates_to": { rel_type: "m.annotation", key: approveSign },
    "org.clevernet.key": digest("sign", key),
  };
  const sign: OutboxDraft = { key: digest("sign", key), roomId, sender, kind: "reaction", about: key, content };
  return { outbox: [...drafts.map((draft) => ({ ...draft, ...shows })), sign], text };
}

interface OfferParts {
  readonly offers: KnowledgeOffers;
  readonly rights: Rights;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Takes people's ✅ below the question if an agent shall keep something. */
export class OfferAnswers {
  readonly #parts: OfferParts;

  constructor(parts: OfferParts) {
    this.#parts = parts;
  }

  /** Finds the question that a message asks, if it can still be answered. */
  find(eventId: EventId): Promise<KnowledgeOffer | undefined> {
    return this.#parts.offers.asked(eventId);
  }

  /** Keeps what is offered. Throws a `UserError` where the person may not have anything kept. */
  async accept(offer: KnowledgeOffer, by: UserId): Promise<void> {
    const { offers, onOutbox, rights } = this.#parts;
    if (!includesLevel(await rights.of(by), "operate"))
      throw new UserError("To have something kept as knowledge you need the right to operate.");
    const told = tellKept(offer, by);
    if (await offers.keep(offer.key, by, [told])) onOutbox([told.roomId]);
  }
}

/** Edit by which the question says that it was answered. */
const tellKept = (offer: KnowledgeOffer, by: UserId): OutboxDraft =>
  editOfQuestion(offer, {
    key: digest("kept", offer.key),
    markdown: `${approveSign} Kept as knowledge by ${by}: ${quote(offer.source)}`,
  });
