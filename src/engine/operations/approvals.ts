import { UserError } from "../../base/lib/errors.ts";
import type { Conversation, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Operation, Operations } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { showInput } from "./approval-card.ts";
import { tellOutcome } from "./asking.ts";
import type { Toolbox } from "./toolbox.ts";

export interface ApprovalParts {
  readonly operations: Operations;
  readonly rooms: Rooms;
  readonly rights: Rights;
  readonly botUserId: UserId;
  readonly toolbox: Toolbox;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  readonly onWoken: (conversations: readonly Conversation[]) => void;
}

/** Decision of a person on a question. */
export interface PersonsDecision {
  readonly isApproved: boolean;
  readonly by: UserId;
  /** The room in which the person has said it. */
  readonly roomId: RoomId;
  readonly because?: string | undefined;
}

/** Takes people's decisions, in whichever way they are given, and ends questions that nobody has decided in time. */
export class Approvals {
  readonly #parts: ApprovalParts;

  constructor(parts: ApprovalParts) {
    this.#parts = parts;
  }

  /** Decides once, and lets the turn that waits for it go on. Throws a `UserError` that says why it does not count. */
  async decide(operation: Operation, { isApproved, by, roomId, because }: PersonsDecision): Promise<void> {
    const { operations, onWoken } = this.#parts;
    await this.#mayDecide(operation, by, roomId);
    const decision = isApproved ? "approved" : "denied";
    // An equal decision of the same person stands: the process may have died before it answered.
    const isRepeated = operation.decision === decision && operation.decidedBy === by;
    if (isRepeated && (!isApproved || operation.state === "asked" || operation.state === "running")) return;
    if (isDecided(operation)) throw new UserError(whatBecame(operation));
    if (operation.isOverdue) throw new UserError(whatBecame({ ...operation, state: "expired" }));
    if (isApproved && showInput(operation.input as Record<string, unknown>) === undefined) {
      throw new UserError(
        `Operation ${operation.id} can only be denied: its input is too long to be shown, so that nobody has seen all of it.`,
      );
    }
    // An approved operation edits its card when it is done, not now: a client without edits shows each edit as a message.
    const edit = isApproved ? [] : tellOutcome(operation, { state: "denied", by, because }, this.#parts);
    const woken = await operations.decide(operation.id, decision, { userId: by, because }, edit);
    if (!woken) throw new UserError(whatBecame((await operations.find(operation.id)) ?? operation));
    onWoken([woken]);
    this.#deliver(edit);
  }

  /** Decides operation number `id`; otherwise like `decide`. */
  async decideNumber(id: number, verdict: PersonsDecision): Promise<void> {
    const operation = await this.#parts.operations.find(id);
    if (!operation) throw new UserError(`There is no operation ${id}.`);
    if (await this.#parts.operations.hasNamesake(operation, verdict.roomId)) {
      throw new UserError(
        `Another question here has the number ${id} as well, from before this bridge's database was restored. Decide with a reaction to the question that you mean.`,
      );
    }
    await this.decide(operation, verdict);
  }

  /** Ends what nobody has decided in time. Returns the conversations that can go on. */
  async expire(): Promise<Conversation[]> {
    const { operations } = this.#parts;
    const woken: Conversation[] = [];
    for (const operation of await operations.findOverdue()) {
      const told = tellOutcome(operation, { state: "expired" }, this.#parts);
      const conversation = await operations.decide(operation.id, "expired", undefined, told);
      if (!conversation) continue;
      woken.push(conversation);
      this.#deliver(told);
    }
    return woken;
  }

  /** Somebody has changed a message (`how`): what it asked for, and nobody has decided yet, is not asked for any more. */
  async withdraw(eventId: EventId, how: "edited" | "taken back"): Promise<void> {
    const because = `the message that asked for it was ${how}`;
    for (const operation of await this.#parts.operations.requestChanged(eventId))
      await this.#withdraw(operation, because);
  }

  /**
   * Words in an operation were taken back: it is not asked for any more, unless somebody has decided already.
   * @param blanked what takes the place of its texts
   */
  async withdrawBlanked(id: number, blanked: Partial<Pick<Operation, "summary" | "input">>): Promise<void> {
    const operation = await this.#parts.operations.find(id);
    if (operation?.state === "asked" && operation.decision === null)
      await this.#withdraw({ ...operation, ...blanked }, "words in it were taken back");
  }

  async #withdraw(operation: Operation, because: string): Promise<void> {
    const { onWoken, operations } = this.#parts;
    const edit = tellOutcome(operation, { state: "withdrawn", because }, this.#parts);
    const woken = await operations.decide(operation.id, "withdrawn", { because }, edit);
    if (!woken) return;
    onWoken([woken]);
    this.#deliver(edit);
  }

  /**
   * People of the card's room, or of the room it was asked from; admins also from the control room. Only its members can
   * say anything in a room.
   */
  async #mayDecide({ id, cardRoom, roomId: from }: Operation, by: UserId, roomId: RoomId): Promise<void> {
    const { rights, rooms } = this.#parts;
    const level = await rights.of(by);
    if (!includesLevel(level, "operate")) {
      throw new UserError(`To decide this you need the right to operate; you have: ${level}.`);
    }
    if (roomId === cardRoom || roomId === from) return;
    if (level === "admin" && roomId === (await rooms.controlRoom())) return;
    throw new UserError(`Operation ${id} does not belong to this room: decide it in the room of its card.`);
  }

  #deliver(drafts: readonly OutboxDraft[]): void {
    this.#parts.onOutbox(drafts.map(({ roomId }) => roomId));
  }
}

/** Nobody has seen what has no card: it is being asked elsewhere. */
const isDecided = ({ cardKey, state, decision }: Operation): boolean =>
  state !== "asked" || decision !== null || cardKey === null;

/** Why there is nothing to decide any more. */
function whatBecame(operation: Operation): string {
  const { id, state, decision, decidedAt, decidedBecause, decidedBy, cardKey } = operation;
  const name = `Operation ${id}`;
  if (cardKey === null) return `${name} was not asked for: there is nothing to decide.`;
  if (state === "expired") return `${name} has expired: nobody had decided in time.`;
  if (decision !== null) return `${name} was already ${decision} by ${decidedBy}.`;
  if (decidedBecause !== null && decidedAt !== null) return `${name} was withdrawn: ${decidedBecause}.`;
  if (decidedBecause !== null) return `${name} could not be asked for, and is not carried out: ${decidedBecause}`;
  return `${name} was stopped.`;
}
