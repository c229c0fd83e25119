import { systemEvent } from "../context/ephemeris.ts";
import type { Operation, OperationCall, OperationState, Question } from "../database/operations.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import { digest, HOME } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import type { Mind } from "./mind.ts";
import { utter } from "./speech.ts";
import type { ToolContext } from "./tool.ts";

/** How long people may think about it. */
const expiresAfterMs = 24 * 3_600_000;
const parkedMost = 10;

/** How people are asked whether an operation may be carried out. */
export interface Asking {
  readonly question: Question;
  /** The card. */
  readonly outbox: readonly OutboxDraft[];
  /** What the agent is told in its ephemeris. */
  readonly told: Element;
}

/**
 * Finds out whom to ask, and how; or why nobody can be asked.
 * @param before the operation as it was asked for before, with another input
 */
export async function askPeople(
  mind: Pick<Mind, "operations" | "clock">,
  call: OperationCall,
  { agent, roomId, thread }: Pick<ToolContext, "agent" | "roomId" | "thread">,
  because: string,
  before: Operation | undefined,
): Promise<Asking | { readonly refusal: string }> {
  const { id: next, parked } = await mind.operations.reserve({ agent: agent.name, roomId });
  const id = before?.id ?? next;
  if (parked >= parkedMost) {
    return { refusal: `${because}, and ${parked} turns of this conversation already wait for an approval` };
  }
  if (roomId === HOME) return { refusal: `${because}, and there is nobody here who could allow it` };
  const now = mind.clock.now();
  const expiresAt = new Date(now.getTime() + expiresAfterMs);
  const cardKey = digest("card", call.key, call.inputHash);
  const text = `**Operation ${id}** asks for approval: ${call.tool} (${call.kind}), because ${because}.`;
  return {
    question: { id, askedBecause: because, expiresAt, cardRoom: roomId, cardKey },
    outbox: utter({ sender: agent.userId, roomId, text, thread, key: cardKey }),
    told: systemEvent(
      now,
      `Operation ${id}, ${call.tool} (call ${call.callId}), waits for approval until ${expiresAt.toISOString()}: ${because}. The turn goes on when people have decided.`,
    ),
  };
}

/** What becomes of an operation's card when it has ended. */
export const cardOutcome = (
  _operation: Operation,
  _ended: { readonly state: OperationState; readonly error?: string },
): OutboxDraft[] => [];
