import { readMessage } from "../../adapters/matrix/message.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { RecalledView } from "../../base/prompt/recalled-view.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { importanceOf } from "../../domain/memory/importance.ts";
import type { KnowledgeBase } from "../../domain/memory/knowledge-base.ts";
import type { MemoryRecall } from "../../domain/memory/recall.ts";
import type { Stretch } from "../../domain/tables/recall-query.ts";
import type { Seen, SeenEvent } from "../../domain/tables/sight.ts";
import { stateView } from "./state-files.ts";

/** Facts by which a look asks the memory. */
export interface RecallMoment {
  readonly agent: Agent;
  readonly here: RoomId;
  /** People for whom the turn acts. */
  readonly requesters: readonly UserId[];
  /** True if something that was said caused the turn; a timer or a schedule says nothing. */
  readonly isAsked: boolean;
  /** New events of the room, the oldest first. */
  readonly news: readonly Pick<SeenEvent, "type" | "content" | "sender">[];
  /** All that the look shows: nothing of it is recalled. */
  readonly seen: Pick<Seen, "audience" | "ephemeris" | "events" | "hasKnowledge" | "redacted" | "state" | "todos">;
}

/** Memories and knowledge that come to mind, with all that it makes of whoever reads it. */
export interface Recollection {
  /** The best first. */
  readonly found: readonly RecalledView[];
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
}

/** Where it comes from. */
export interface Recollecting {
  readonly memory: Pick<MemoryRecall, "recall">;
  readonly knowledge: Pick<KnowledgeBase, "find">;
}

/** Memories of a look, the best of which are shown. */
const recalledMost = 5;
/** Passages of knowledge among them. */
const passagesMost = 3;
/** Least score of a memory that is shown without being asked for. */
const scoreLeast = 0.3;
/** Messages of less importance, such as greetings, recall nothing. */
const importanceLeast = 0.2;
/** Wait for a vector of the question: an answer should not wait for the memory. */
const patienceMs = 10;

export const nothingRecalled: Recollection = { found: [], sources: [], taint: [] };

/**
 * Recalls what fits the new events of a look, and what it does not show anyway. Where nobody has said anything, that is
 * what fits the agent's plans, or else the last thing that was said.
 */
export async function recollect({ memory, knowledge }: Recollecting, moment: RecallMoment): Promise<Recollection> {
  const { agent, here, isAsked, news, requesters, seen } = moment;
  const said = news.flatMap((event) => {
    const text = readMessage(event)?.body ?? "";
    return importanceOf({ kind: "observation", text }) < importanceLeast ? [] : [{ text, sender: event.sender }];
  });
  const text = isAsked ? said.map((one) => one.text).join("\n") : planOf(moment);
  if (text.trim() === "") return nothingRecalled;
  const by: UserId | undefined = said.at(-1)?.sender;
  const { name, owner, userId } = agent;
  const [recalled, passages] = await Promise.all([
    memory.recall(agent, here, {
      text,
      by,
      limit: recalledMost,
      shown: stretchesOf(seen.events),
      // From there on the look shows what the agent itself has thought and done.
      ownBefore: seen.ephemeris[0]?.at,
      scoreLeast,
      patienceMs,
    }),
    // Files that define agents are for people with the right to use: nothing of them comes to mind unasked.
    seen.hasKnowledge
      ? knowledge.find(
          { agent: name, userId, owner, here, requesters, uses: false },
          { text, limit: passagesMost, scoreLeast, patienceMs },
        )
      : [],
  ]);
  const known = passages.map(
    ({ at, firstLine, isOutdated, lastLine, score, source, text: passage }): RecalledView => ({
      kind: "knowledge",
      roomId: here,
      eventId: null,
      number: null,
      sender: userId,
      at,
      text: passage,
      score,
      passage: { source, firstLine, lastLine, isOutdated },
    }),
  );
  return {
    found: [...recalled.found, ...known].toSorted((one, other) => other.score - one.score).slice(0, recalledMost),
    sources: [...recalled.sources, ...passages.flatMap(({ sources }) => sources)],
    taint: [...recalled.taint, ...passages.flatMap(({ taint }) => taint)],
  };
}

/** Puts together what the agent has in mind: open todos, and its status if it has one; or the last thing that was said. */
function planOf({ agent, here, seen }: RecallMoment): string {
  const todos = seen.todos.filter(({ isDone }) => !isDone).map(({ name }) => name);
  const status = stateView(agent, seen)?.status?.text.trim() ?? "";
  const plan = [/^(?:Status: Idle)?$/.test(status) ? "" : status, ...todos].filter((text) => text !== "");
  if (plan.length > 0) return plan.join("\n");
  const last = seen.events.findLast((event) => event.roomId === here && readMessage(event) !== undefined);
  return (last && readMessage(last)?.body) ?? "";
}

/**
 * Parts of history that are made of these events without a gap. There are few of them: a room's events are numbered, and
 * the newest are shown. Before the history that was read when an agent came, there may be more that is not shown.
 */
export function stretchesOf(
  events: readonly Pick<SeenEvent, "roomId" | "position" | "number" | "source">[],
): Stretch[] {
  const stretches: Stretch[] = [];
  for (const [roomId, inRoom] of Map.groupBy(events, (event) => event.roomId)) {
    let first: number | undefined;
    const sorted = inRoom.toSorted((a, b) => a.position - b.position);
    for (const [index, { number, position, source }] of sorted.entries()) {
      first ??= position;
      const next = sorted[index + 1];
      const isRead = next?.source === "history" && source !== "history";
      if (number !== null && next?.number === number + 1 && !isRead) continue;
      stretches.push({ roomId, first, last: position });
      first = undefined;
    }
  }
  return stretches;
}
