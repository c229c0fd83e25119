import type { Json } from "../../adapters/database/connection.ts";
import { agentName } from "../../adapters/matrix/message.ts";
import type { UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import type { RoomView, TimelineEntry } from "../../base/prompt/types.ts";
import type { StoredEvent } from "../tables/events.ts";
import type { OutboxDraft } from "../tables/outbox.ts";
import type { Rights } from "./rights.ts";

/** Tells whose texts an agent may be steered by. */
export interface Trust {
  /** The bridge's own user. */
  readonly botUserId: UserId;
  readonly rights: Pick<Rights, "findBelow">;
}

/**
 * Those of the names (user ids, and paths of tainted files) that taint who reads what they stand for: everybody's but
 * the agent's own, its owner's, the bot's, and that of people who may do everything themselves. Those for whom a turn
 * acts are among them, too, where they may not: another turn that reads it does not act for them. Names that such people
 * gave to rooms count as what they say; what they call themselves is not shown, and neither are topics.
 */
export async function findUntrusted(
  names: Iterable<string>,
  agent: { readonly userId: UserId; readonly owner: UserId },
  trust: Trust,
): Promise<string[]> {
  const known: readonly string[] = [agent.userId, agent.owner, trust.botUserId];
  const distinct = [...new Set(names)].filter((name) => !known.includes(name));
  const people = distinct.filter((name) => name.startsWith("@")) as UserId[];
  const theirs: ReadonlySet<string> = new Set(await findStrangers(people, trust));
  return distinct.filter((name) => !name.startsWith("@") || theirs.has(name));
}

/** Chooses the people whose texts do not taint. */
export async function findTrusted(
  userIds: readonly UserId[],
  agent: Parameters<typeof findUntrusted>[1],
  trust: Trust,
): Promise<Set<UserId>> {
  const others: readonly string[] = await findUntrusted(userIds, agent, trust);
  return new Set(userIds.filter((userId) => !others.includes(userId)));
}

/** Agents, whose words may be anybody's, and people who may not do everything themselves. */
export async function findStrangers(userIds: readonly UserId[], { botUserId, rights }: Trust): Promise<UserId[]> {
  const { server } = splitUserId(botUserId);
  const isAgent = (userId: UserId): boolean => agentName(userId, server) !== undefined;
  const people = userIds.filter((userId) => !isAgent(userId));
  return [...userIds.filter(isAgent), ...(await rights.findBelow("operate", people))];
}

const mark = "org.clevernet.taint";

/** Marks messages of ours that quote untrusted texts: they are no words of ours. */
export const markTaint = (drafts: readonly OutboxDraft[], taint: readonly string[]): readonly OutboxDraft[] =>
  taint.length === 0
    ? drafts
    : drafts.map((draft) => ({
        ...draft,
        content: { ...(draft.content as Readonly<Record<string, Json>>), [mark]: [...taint] },
      }));

/** Untrusted texts that one of us has quoted there. */
export const findQuoted = (
  events: readonly Pick<StoredEvent, "content" | "sender">[],
  us: readonly UserId[],
): string[] =>
  events
    .filter(({ sender }) => us.includes(sender))
    .flatMap(({ content: { [mark]: names } }) => (Array.isArray(names) ? names : []))
    .filter((name) => typeof name === "string");

/** Collects everybody who has said something there. */
export const speakersIn = (rooms: Iterable<Pick<RoomView, "history" | "newEvents">>): Set<UserId> => {
  const speakers = new Set<UserId>();
  for (const { history, newEvents } of rooms)
    for (const entries of [history, newEvents])
      for (const entry of entries) if (says(entry)) speakers.add(entry.sender);
  return speakers;
};

const says = (entry: TimelineEntry): boolean => entry.kind === "message" || entry.reaction !== undefined;
