import type { RoomView, TimelineEntry } from "../context/types.ts";
import type { Json } from "../database/connection.ts";
import type { StoredEvent } from "../database/events.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { UserId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { agentName } from "../matrix/message.ts";
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
export async function untrusted(names: Iterable<string>, agent: Agent, trust: Trust): Promise<string[]> {
  const known: readonly string[] = [agent.userId, agent.owner, trust.botUserId];
  const distinct = [...new Set(names)].filter((name) => !known.includes(name));
  const people = distinct.filter((name) => name.startsWith("@")) as UserId[];
  const theirs: ReadonlySet<string> = new Set(await strangers(people, trust));
  return distinct.filter((name) => !name.startsWith("@") || theirs.has(name));
}

/** Agents, whose words may be anybody's, and people who may not do everything themselves. */
export async function strangers(userIds: readonly UserId[], { botUserId, rights }: Trust): Promise<UserId[]> {
  const { server } = splitUserId(botUserId);
  const isAgent = (userId: UserId): boolean => agentName(userId, server) !== undefined;
  const people = userIds.filter((userId) => !isAgent(userId));
  return [...userIds.filter(isAgent), ...(await rights.below("operate", people))];
}

const mark = "org.clevernet.taint";

/** What we say of untrusted texts that somebody has asked for says so: it is no word of ours. */
export const marked = (drafts: readonly OutboxDraft[], taint: readonly string[]): readonly OutboxDraft[] =>
  taint.length === 0
    ? drafts
    : drafts.map((draft) => ({
        ...draft,
        content: { ...(draft.content as Readonly<Record<string, Json>>), [mark]: [...taint] },
      }));

/** Untrusted texts that one of us has quoted there. */
export const quotedIn = (events: readonly Pick<StoredEvent, "content" | "sender">[], us: readonly UserId[]): string[] =>
  events
    .filter(({ sender }) => us.includes(sender))
    .flatMap(({ content: { [mark]: names } }) => (Array.isArray(names) ? names : []))
    .filter((name) => typeof name === "string");

/** Whoever has said something there. */
export const speakersIn = (rooms: readonly Pick<RoomView, "history" | "newEvents">[]): Set<UserId> =>
  new Set(
    rooms.flatMap(({ history, newEvents }) => [...history, ...newEvents].filter(says).map(({ sender }) => sender)),
  );

const says = (entry: TimelineEntry): boolean => entry.kind === "message" || entry.reaction !== undefined;
