import type { Clock } from "../../base/lib/clock.ts";
import { digest, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import type { Element } from "../../base/lmml/element.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { agentUserId } from "../../domain/agents/agent.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { OperationCall, OperationState, Question } from "../../domain/tables/operation-record.ts";
import type { Operation, Operations } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { approvalCard, type Card, type CardOutcome, type CardQuestion, outcomeOfCard } from "./approval-card.ts";
import type { AskVerdict } from "./gate.ts";
import { quote } from "./shown-text.ts";
import type { ToolContext } from "./tool.ts";
import type { Toolbox } from "./toolbox.ts";
import { roomsIn, wordingOf } from "./wording.ts";

const parkedMost = 10;
/** People who are notified of a card, where none of those for whom the agent acts may decide. */
const notifiedMost = 10;

/** Call that takes files elsewhere. */
interface Carrier {
  readonly carried?: readonly Stamp[];
}

type Asker = Pick<ToolContext, "agent" | "roomId" | "thread" | "taint"> & Carrier;

/** Services by which people are asked. */
export interface AskServices {
  readonly botUserId: UserId;
  readonly clock: Clock;
  readonly operations: Operations;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly toolbox: Toolbox;
}

/** Question to people whether an operation may be carried out, and its cards. */
interface Asking {
  readonly question: Question;
  /** The card, and whatever else is said. */
  readonly outbox: readonly OutboxDraft[];
  /** Entry for the agent's ephemeris. */
  readonly told: Element;
}

/** Finds the people in a room who may decide on operations. */
async function approversIn(roomId: RoomId, { rooms, rights }: { rooms: Rooms; rights: Rights }): Promise<UserId[]> {
  const humans = await rooms.humans(roomId);
  const levels = await Promise.all(humans.map((human) => rights.of(human)));
  return humans.filter((_, index) => includesLevel(levels[index] ?? "none", "operate"));
}

/** Finds out whom to ask, and how; or why nobody can be asked. */
export async function askPeople(
  services: AskServices,
  call: OperationCall,
  asker: Asker,
  { reason: because, wall }: Pick<AskVerdict, "reason" | "wall">,
): Promise<Asking | { readonly refusal: string }> {
  const { agent, roomId } = asker;
  const { id, expiresAt, parked } = await services.operations.reserve({ agent: agent.name, roomId }, call.id);
  if (parked >= parkedMost) {
    return { refusal: `${because}, and ${parked} turns of this conversation already wait for an approval` };
  }
  const place = await placeOf(services, call, asker);
  if (!place) return { refusal: `${because}, and nobody may approve it, neither here nor in a control room` };
  const { card, approvers, from, isSealed, speaks } = place;
  const now = services.clock.now();
  const where = { agent: agent.name, roomId };
  const tool = services.toolbox.find(call.tool);
  const names = await namesOf(roomsIn({ ...call, roomId }, tool), services.rooms);
  const here = (text: string) => (from === undefined ? text.replaceAll(`rooms:/${roomId}/`, "") : text);
  const theirs = approvers.filter((person) => call.requesters.includes(person));
  const question: CardQuestion = {
    ...call,
    input: call.input as Record<string, unknown>,
    id,
    wording: wordingOf({ ...call, ...where }, isSealed ? undefined : tool, { isHere: from === undefined, names }),
    now,
    timeZone: agent.settings.timeZone,
    reason: isSealed ? withoutFiles(because, asker.taint) : here(because),
    taint: isSealed ? [] : asker.taint.map(here),
    carried: isSealed ? [] : (asker.carried ?? []).map((stamp) => ({ ...stamp, path: here(stamp.path) })),
    approvers,
    notified: theirs.length > 0 ? theirs : approvers.slice(0, notifiedMost),
    expiresAt,
    from,
    isSealed,
    thread: from === undefined ? asker.thread : undefined,
  };
  const whom = from === undefined ? "by people in this room" : "by those who run this bridge";
  return {
    question: {
      id,
      askedBecause: because,
      askedWall: wall?.place,
      expiresAt,
      cardRoom: card.roomId,
      cardKey: card.key,
    },
    outbox: [...approvalCard(card, question), ...(from && speaks ? tellElsewhere(id, call, asker) : [])],
    told: systemEvent(
      now,
      `Operation ${id}, ${call.tool} (call ${call.callId}), waits until ${eventTime(expiresAt)} for approval ${whom}: ${because}. The turn goes on when they have decided.`,
    ),
  };
}

/** The reason without names of files: in an encrypted room these are words like others. */
const withoutFiles = (because: string, taint: readonly string[]): string =>
  taint.filter((name) => !/^[@!]/.test(name)).reduce((text, name) => text.replaceAll(name, "a file"), because);

interface CardPlace {
  readonly card: Card;
  readonly approvers: readonly UserId[];
  /** Room from which the agent asks, if the card is in another. */
  readonly from: string | undefined;
  /** That room is encrypted, so that the card may not say what it is about. */
  readonly isSealed: boolean;
  /** There is a room in which the agent can say something. */
  readonly speaks: boolean;
}

/** The conversation's room where somebody in it may decide, or else the control room. */
async function placeOf(
  { botUserId, rights, rooms }: AskServices,
  { key }: OperationCall,
  { agent, roomId }: Asker,
): Promise<CardPlace | undefined> {
  const cardKey = digest("card", key);
  const speaks = roomId !== HOME && !(await rooms.isUnwritable(roomId));
  const here = speaks ? await approversIn(roomId, { rooms, rights }) : [];
  if (here.length > 0) {
    return {
      card: { key: cardKey, roomId, sender: agent.userId },
      approvers: here,
      from: undefined,
      isSealed: false,
      speaks,
    };
  }
  const control = await rooms.controlRoom();
  const admins =
    control === undefined || (await rooms.isEncrypted(control)) ? [] : await approversIn(control, { rooms, rights });
  if (control === undefined || admins.length === 0) return undefined;
  const name = (await namesOf([roomId], rooms)).get(roomId);
  const room = name === undefined ? quote(roomId) : `${quote(name)} (${quote(roomId)})`;
  const from = `${quote(agent.displayName)} (${agent.userId}), ${roomId === HOME ? "by itself" : `in ${room}`}`;
  const isSealed = await rooms.isEncrypted(roomId);
  return { card: { key: cardKey, roomId: control, sender: botUserId }, approvers: admins, from, isSealed, speaks };
}

/** Names of rooms that have one. */
export async function namesOf(roomIds: readonly string[], rooms: Pick<Rooms, "context">): Promise<Map<string, string>> {
  const found = roomIds.map(async (roomId) => {
    const name = (await rooms.context(roomId as RoomId)).state["m.room.name"]?.name;
    return typeof name === "string" && name.trim() !== "" ? [[roomId, name] as const] : [];
  });
  return new Map((await Promise.all(found)).flat());
}

function tellElsewhere(id: number, { key }: OperationCall, { agent, roomId, thread }: Asker) {
  const text = `Nobody here may approve what I am about to do (operation ${id}): I have asked those who run this bridge.`;
  const sender = agent.userId;
  return utter({ sender, roomId, text, thread, isNotice: true, key: digest("asked elsewhere", key) });
}

/** The card that was sent for an operation; undefined where nobody was asked. */
function cardOf({ agent, cardKey, cardRoom, roomId }: Operation, botUserId: UserId): Card | undefined {
  if (cardKey === null || cardRoom === null) return undefined;
  const sender = cardRoom === roomId ? agentUserId(agent, splitUserId(botUserId).server) : botUserId;
  return { key: cardKey, roomId: cardRoom, sender };
}

/** Services by which a card is found, and worded. */
export type OutcomeServices = Pick<AskServices, "botUserId" | "toolbox">;

/** Makes the edit by which an operation's card tells its outcome; none where nobody was asked. */
export function tellOutcome(
  operation: Operation,
  outcome: Omit<CardOutcome, "id" | "wording">,
  { botUserId, toolbox }: OutcomeServices,
): OutboxDraft[] {
  const card = cardOf(operation, botUserId);
  if (!card) return [];
  const { cardRoom, isCardSealed: isSealed, id, roomId, tool } = operation;
  const wording = wordingOf(operation, isSealed ? undefined : toolbox.find(tool), { isHere: cardRoom === roomId });
  return [outcomeOfCard(card, { id, wording, ...outcome, ...(isSealed && { because: undefined }) })];
}

/** Makes the one edit of an operation's card when it has ended. A card that was denied says so already. */
export function cardOutcome(
  operation: Operation,
  { state, error }: { readonly state: OperationState; readonly error?: string },
  services: OutcomeServices,
): OutboxDraft[] {
  const { decision, decidedBy: by } = operation;
  const wasTold = state === "expired" || (state === "refused" && decision !== "approved");
  if (wasTold || state === "asked" || state === "running") return [];
  return tellOutcome(operation, { state, by, because: error }, services);
}
