import type { RoomView, TimelineEntry } from "../context/types.ts";
import type { UserId } from "../lib/ids.ts";
import type { Agent } from "./agent.ts";
import type { Mind } from "./mind.ts";

/** Answers for what an agent can be made to do by the texts that it reads. */
export type Trust = Pick<Mind, "botUserId" | "rights">;

/**
 * Those of the names (user ids, and paths of tainted files) that taint who reads what they stand for: everybody's but
 * the agent's own, its owner's, the bot's, and that of people who may do everything themselves. Those for whom a turn
 * acts are among them, too, where they may not: another turn that reads it does not act for them. Names and topics of
 * rooms, and what people call themselves, do not count: they are short, and no text of anybody's.
 */
export async function untrusted(
  names: Iterable<string>,
  agent: Agent,
  { botUserId, rights }: Trust,
): Promise<string[]> {
  const known: readonly string[] = [agent.userId, agent.owner, botUserId];
  const distinct = [...new Set(names)].filter((name) => !known.includes(name));
  const people = distinct.filter((name) => name.startsWith("@")) as UserId[];
  const strangers: ReadonlySet<string> = new Set(await rights.below("operate", people));
  return distinct.filter((name) => !name.startsWith("@") || strangers.has(name));
}

/** Whoever has said something there. */
export const speakersIn = (rooms: readonly Pick<RoomView, "history" | "newEvents">[]): Set<UserId> =>
  new Set(
    rooms.flatMap(({ history, newEvents }) => [...history, ...newEvents].filter(says).map(({ sender }) => sender)),
  );

const says = (entry: TimelineEntry): boolean => entry.kind === "message" || entry.reaction !== undefined;
