import { systemEvent } from "../context/ephemeris.ts";
import { eventTime } from "../context/time.ts";
import type { OperationCall, OperationState, Question } from "../database/operation-record.ts";
import type { Operation } from "../database/operations.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Rooms } from "../database/rooms.ts";
import { digest, HOME, type RoomId, type UserId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import type { Element } from "../lmml/element.ts";
import { agentUserId } from "./agent.ts";
import { approvalCard, type Card, type CardQuestion, outcomeOfCard } from "./approval-card.ts";
import type { Mind } from "./mind.ts";
import { includesLevel } from "./permissions.ts";
import type { Rights } from "./rights.ts";
import { isEncrypted } from "./room.ts";
import { utter } from "./speech.ts";
import type { ToolContext } from "./tool.ts";

const parkedMost = 10;
/** People who are notified of a card, where none of those for whom the agent acts may decide. */
const notifiedMost = 10;

type Asker = Pick<ToolContext, "agent" | "roomId" | "thread" | "taint">;

/** How people are asked whether an operation may be carried out. */
interface Asking {
  readonly question: Question;
  /** The card, and whatever else is said. */
  readonly outbox: readonly OutboxDraft[];
  /** What the agent is told in its ephemeris. */
  readonly told: Element;
}

/** Those in a room who may decide what agents ask. */
async function approversIn(roomId: RoomId, { rooms, rights }: { rooms: Rooms; rights: Rights }): Promise<UserId[]> {
  const humans = await rooms.humans(roomId);
  const levels = await Promise.all(humans.map((human) => rights.of(human)));
  return humans.filter((_, index) => includesLevel(levels[index] ?? "none", "operate"));
}

/** Finds out whom to ask, and how; or why nobody can be asked. */
export async function askPeople(
  mind: Pick<Mind, "botUserId" | "clock" | "operations" | "rights" | "rooms">,
  call: OperationCall,
  asker: Asker,
  because: string,
): Promise<Asking | { readonly refusal: string }> {
  const { agent, roomId } = asker;
  const { id, expiresAt, parked } = await mind.operations.reserve({ agent: agent.name, roomId });
  if (parked >= parkedMost) {
    return { refusal: `${because}, and ${parked} turns of this conversation already wait for an approval` };
  }
  const place = await placeOf(mind, call, asker);
  if (!place) return { refusal: `${because}, and nobody may approve it, neither here nor in a control room` };
  const { card, approvers, from, speaks } = place;
  const now = mind.clock.now();
  const theirs = approvers.filter((person) => call.requesters.includes(person));
  const question: CardQuestion = {
    ...call,
    input: call.input as Record<string, unknown>,
    id,
    reason: because,
    taint: asker.taint,
    approvers,
    notified: theirs.length > 0 ? theirs : approvers.slice(0, notifiedMost),
    expiresAt,
    from,
    thread: from === undefined ? asker.thread : undefined,
  };
  const where = from === undefined ? "by people in this room" : "by those who run this bridge";
  return {
    question: { id, askedBecause: because, expiresAt, cardRoom: card.roomId, cardKey: card.key },
    outbox: [...approvalCard(card, question), ...(from && speaks ? askedElsewhere(id, call, asker) : [])],
    told: systemEvent(
      now,
      `Operation ${id}, ${call.tool} (call ${call.callId}), waits until ${eventTime(expiresAt)} for approval ${where}: ${because}. The turn goes on when they have decided.`,
    ),
  };
}

interface Place {
  readonly card: Card;
  readonly approvers: readonly UserId[];
  /** Where the agent asks from, if the card is in another room. */
  readonly from: string | undefined;
  /** There is a room, in which what is said is not encrypted. */
  readonly speaks: boolean;
}

/** The conversation's room where somebody in it may decide, or else the control room. */
async function placeOf(
  mind: Pick<Mind, "botUserId" | "rights" | "rooms">,
  { key }: OperationCall,
  { agent, roomId }: Asker,
): Promise<Place | undefined> {
  const cardKey = digest("card", key);
  const speaks = roomId !== HOME && !(await isEncrypted(roomId, mind.rooms));
  const here = speaks ? await approversIn(roomId, mind) : [];
  if (here.length > 0) {
    return { card: { key: cardKey, roomId, sender: agent.userId }, approvers: here, from: undefined, speaks };
  }
  const control = await mind.rooms.controlRoom();
  const admins = control === undefined ? [] : await approversIn(control, mind);
  if (control === undefined || admins.length === 0) return undefined;
  const from = `${agent.displayName} (${agent.userId}), ${roomId === HOME ? "by itself" : `in ${roomId}`}`;
  return { card: { key: cardKey, roomId: control, sender: mind.botUserId }, approvers: admins, from, speaks };
}

function askedElsewhere(id: number, { key }: OperationCall, { agent, roomId, thread }: Asker) {
  const text = `Nobody here may approve what I am about to do (operation ${id}): I have asked those who run this bridge.`;
  const sender = agent.userId;
  return utter({ sender, roomId, text, thread, notice: true, key: digest("asked elsewhere", key) });
}

/** The card that was sent for an operation; undefined where nobody was asked. */
export function cardOf({ agent, cardKey, cardRoom, roomId }: Operation, botUserId: UserId): Card | undefined {
  if (cardKey === null || cardRoom === null) return undefined;
  const sender = cardRoom === roomId ? agentUserId(agent, splitUserId(botUserId).server) : botUserId;
  return { key: cardKey, roomId: cardRoom, sender };
}

/** What becomes of an operation's card when it has ended. What people said no to is told on it already. */
export function cardOutcome(
  operation: Operation,
  { state, error }: { readonly state: OperationState; readonly error?: string },
  botUserId: UserId,
): OutboxDraft[] {
  const card = cardOf(operation, botUserId);
  const { decision, decidedBy: by, id, tool, summary } = operation;
  const told = state === "expired" || (state === "refused" && decision !== "approved");
  if (!card || told || state === "asked" || state === "running") return [];
  return [outcomeOfCard(card, { id, tool, summary, state, by, because: error })];
}
