import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import { HomeserverError, type MatrixClient } from "./client.ts";

/** A stretch of a room's timeline, oldest first, that ends where the room stood when it was read. */
export interface SweptRoom {
  readonly roomId: RoomId;
  readonly events: readonly Record<string, unknown>[];
}

interface SweptInvite {
  readonly roomId: RoomId;
  readonly inviter: UserId | undefined;
  readonly direct: boolean;
}

export interface Swept {
  /** Token to go on from, once everything else here is stored. */
  readonly next: string;
  readonly rooms: readonly SweptRoom[];
  readonly invites: readonly SweptInvite[];
}

type Reader = Pick<MatrixClient, "messagesBefore" | "sync">;

/** State that is projected; see `routing/project.ts`. */
const stateTypes = [
  "m.room.member",
  "m.room.name",
  "m.room.topic",
  "m.room.canonical_alias",
  "m.room.power_levels",
  "m.room.history_visibility",
  "m.room.encryption",
  "m.room.create",
];

const filter = (first: boolean) => ({
  presence: { types: [] },
  account_data: { types: [] },
  room: {
    ephemeral: { types: [] },
    account_data: { types: [] },
    include_leave: !first,
    state: first ? { types: ["m.room.member"], lazy_load_members: true } : { types: stateTypes },
    timeline: { limit: first ? 1 : 50 },
  },
});

const pageSize = 100;
/** Pages read into the past where the homeserver cut the timeline; what is older is history that nobody waits for. */
const pagesAtMost = 30;

/**
 * Reads what a user missed since a token: the homeserver's own record, whatever it pushed or forgot to push. Without
 * a token it only says where the user stands now: rooms come with the user's own membership and nothing else.
 */
export async function readMissed(
  client: Reader,
  userId: UserId,
  since: string | undefined,
  areKnown: (eventIds: readonly EventId[]) => Promise<boolean>,
): Promise<Swept> {
  const answer = await client.sync(userId, since, filter(since === undefined));
  if (typeof answer.next_batch !== "string")
    throw new Error("the homeserver's answer to a sync names no place to go on from");
  const sections = record(answer.rooms);
  const rooms: SweptRoom[] = [];
  for (const section of [record(sections.join), record(sections.leave)]) {
    for (const [roomId, value] of Object.entries(section)) {
      const room = record(value);
      const state = events(record(room.state).events);
      const timeline = record(room.timeline);
      const recent = events(timeline.events);
      if (since === undefined) {
        const own = [...state, ...recent].filter(
          (event) => event.type === "m.room.member" && event.state_key === userId,
        );
        rooms.push({ roomId: roomId as RoomId, events: own });
        continue;
      }
      const gap =
        timeline.limited === true && typeof timeline.prev_batch === "string"
          ? await readGap(client, userId, roomId as RoomId, timeline.prev_batch, areKnown)
          : [];
      rooms.push({ roomId: roomId as RoomId, events: [...state, ...gap, ...recent] });
    }
  }
  const invites = Object.entries(record(sections.invite)).map(([roomId, value]) =>
    readInvite(userId, roomId as RoomId, value),
  );
  return { next: answer.next_batch, rooms, invites };
}

/** The end of a room's timeline, back to what is known: for the bot, whom Synapse lets not `sync`. */
export const readEnd = async (
  client: MatrixClient,
  userId: UserId,
  roomId: RoomId,
  areKnown: (eventIds: readonly EventId[]) => Promise<boolean>,
): Promise<SweptRoom> => ({ roomId, events: await readGap(client, userId, roomId, undefined, areKnown) });

async function readGap(
  client: Reader,
  userId: UserId,
  roomId: RoomId,
  from: string | undefined,
  areKnown: (eventIds: readonly EventId[]) => Promise<boolean>,
): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  let token = from;
  for (let page = 0; page < pagesAtMost; page++) {
    const read: Page = await client.messagesBefore({ userId }, roomId, token, pageSize).catch(nothingIfRefused);
    const past = events(read.events);
    found.unshift(...past.toReversed());
    const ids = past.map((event) => event.event_id).filter((id): id is EventId => typeof id === "string");
    if (read.next === undefined || ids.length === 0 || (await areKnown(ids))) break;
    token = read.next;
  }
  return found;
}

type Page = Awaited<ReturnType<MatrixClient["messagesBefore"]>>;

/** Who was banned, or is invited again, may not read what they saw. */
function nothingIfRefused(error: unknown): Page {
  if (error instanceof HomeserverError && error.final) return { events: [], next: undefined };
  throw error;
}

/** An invite comes stripped, without ids, or (from Synapse) with the full event among the stripped state. */
function readInvite(userId: UserId, roomId: RoomId, value: unknown): SweptInvite {
  const invite = events(record(record(value).invite_state).events).find(
    (event) => event.type === "m.room.member" && event.state_key === userId,
  );
  const inviter = invite?.sender;
  return {
    roomId,
    inviter: typeof inviter === "string" ? (inviter as UserId) : undefined,
    direct: record(invite?.content).is_direct === true,
  };
}

const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

const events = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : []);
