import { HOME } from "../../base/lib/ids.ts";
import { isDirect } from "../../domain/agents/attention.ts";
import { findObstacle } from "../../domain/speech/speaking.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { TakenWake } from "../../domain/tables/turns.ts";
import { threadOf } from "./cause.ts";
import { keyOfStep, type TurnState } from "./state.ts";

const text = "I was asked, and found no words for an answer. Ask me again, perhaps in other words.";

/**
 * Tells the log that the model has answered nothing although it was reminded, and the person who waits in a direct
 * room. An agent that gives a reason has decided to keep silent, and none of this is said.
 */
export async function confessSilence(state: TurnState, wakes: readonly TakenWake[], n: number): Promise<OutboxDraft[]> {
  const { agent, frame, mind, turn } = state;
  const { roomId } = turn;
  mind.log.warn({ model: frame.choice.model }, "the model answered nothing, twice");
  if (roomId === HOME || (await findObstacle(roomId, agent, mind.rooms))) return [];
  const room = await mind.rooms.context(roomId);
  const agentsHere = room.agents.filter(({ membership }) => membership === "join").length;
  if (!isDirect(agent, room, agentsHere)) return [];
  return utter({
    sender: agent.userId,
    roomId,
    text,
    thread: threadOf(wakes),
    isNotice: true,
    key: keyOfStep(state, n),
  });
}
