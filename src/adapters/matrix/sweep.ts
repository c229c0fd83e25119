import { type RoomId, secret, type UserId } from "../../base/lib/ids.ts";
import { HomeserverError, type MatrixClient } from "./client.ts";

/** A stretch of a room's timeline, oldest first, that ends where the room stood when it was read. */
export interface SweptRoom {
  readonly roomId: RoomId;
  /** The room's state before the stretch, in no order. Of a stretch that is not whole, it holds what changed before. */
  readonly state?: readonly Record<string, unknown>[];
  readonly events: readonly Record<string, unknown>[];
  /** The stretch is not whole: more stands between this token and these events. See `readAfter`. */
  readonly after?: string;
}

interface SweptInvite {
  readonly roomId: RoomId;
  readonly inviter: UserId | undefined;
  readonly isDirect: boolean;
}

export interface Swept {
  /** Token to go on from, once everything else here is stored. */
  readonly next: string;
  readonly rooms: readonly SweptRoom[];
  readonly invites: readonly SweptInvite[];
}

type Reader = Pick<MatrixClient, "sync">;
/** Reads rooms page by page. */
export type PageReader = Pick<MatrixClient, "request">;

/** State that is projected; see `routing/project.ts`. */
const stateTypes = [
  "m.room.member",
  "m.room.name",
  "m.room.topic",
  "m.room.canonical_alias",
  "m.room.power_levels",
  "m.room.join_rules",
  "m.room.history_visibility",
  "m.room.encryption",
  "m.room.create",
];

/**
 * Never equal to another: Synapse gives the answer of a request once more to whoever repeats it within two minutes, as
 * the next start does after a sweep that was not finished.
 */
const filter = (isFirst: boolean) => ({
  presence: { types: [] },
  account_data: { types: [] },
  room: {
    not_rooms: [`!${secret(8)}:no.such.room`],
    ephemeral: { types: [] },
    account_data: { types: [] },
    include_leave: !isFirst,
    state: isFirst ? { types: ["m.room.member"], lazy_load_members: true } : { types: stateTypes },
    timeline: { limit: isFirst ? 1 : 50 },
  },
});

const pageSize = 100;

/**
 * Reads what a user missed since a token: the homeserver's own record, whatever it pushed or forgot to push. Without
 * a token it only says where the user stands now: rooms come with the user's own membership and nothing else.
 */
export async function readMissed(client: Reader, userId: UserId, since: string | undefined): Promise<Swept> {
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
      const gap = timeline.limited === true ? { after: since } : {};
      rooms.push({ roomId: roomId as RoomId, state, events: recent, ...gap });
    }
  }
  const invites = Object.entries(record(sections.invite)).map(([roomId, value]) =>
    readInvite(userId, roomId as RoomId, value),
  );
  return { next: answer.next_batch, rooms, invites };
}

/** A page of a room's timeline: where it starts, and where the next one does, unless there is none. */
export interface Page {
  readonly events: readonly Record<string, unknown>[];
  readonly start: string | undefined;
  readonly next: string | undefined;
}

/**
 * Reads a room's timeline from a token to its end, oldest first, however long it is: what is known already may stand
 * before what is not. Ends where the homeserver refuses.
 */
export const readAfter = (client: PageReader, userId: UserId, roomId: RoomId, token: string): AsyncGenerator<Page> =>
  readPages(client, userId, roomId, { dir: "f", token });

/** Reads a room's timeline towards the past, newest first, from a token or from its end. */
export const readBefore = (client: PageReader, userId: UserId, roomId: RoomId, token?: string): AsyncGenerator<Page> =>
  readPages(client, userId, roomId, { dir: "b", token });

async function* readPages(
  client: PageReader,
  userId: UserId,
  roomId: RoomId,
  { dir, token }: { readonly dir: "b" | "f"; readonly token: string | undefined },
): AsyncGenerator<Page> {
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/messages`;
  for (let from = token; ; ) {
    const query = { dir, from, limit: pageSize };
    const { chunk, start, end } = await client.request("GET", path, { as: { userId }, query }).catch(nothingIfRefused);
    // A page may hold nothing that the user may see, and more may follow it: only a missing token ends the timeline.
    const next = typeof end === "string" && end !== from ? end : undefined;
    yield { events: events(chunk), start: typeof start === "string" ? start : undefined, next };
    if (next === undefined) return;
    from = next;
  }
}

/** Pages that are read into the past where nobody knows how far a user has read; what is older is history. */
const pagesAtMost = 30;

/**
 * Reads the end of a room's timeline, back to the user's own join: for the bot, whom Synapse does not let `sync`, until
 * there is a token to go on from, which is `next`.
 */
export async function readEnd(
  client: PageReader,
  userId: UserId,
  roomId: RoomId,
): Promise<{ readonly events: readonly Record<string, unknown>[]; readonly next: string | undefined }> {
  const read: Page[] = [];
  for await (const page of readBefore(client, userId, roomId)) {
    read.push(page);
    if (read.length === pagesAtMost || page.events.some((event) => isJoin(event, userId))) break;
  }
  return { events: read.flatMap((page) => page.events).toReversed(), next: read[0]?.start };
}

const isJoin = (event: Record<string, unknown>, userId: UserId): boolean =>
  event.type === "m.room.member" && event.state_key === userId && record(event.content).membership === "join";

/** Reads nothing for a user who was banned, or is invited again: they may not read what they saw. */
function nothingIfRefused(error: unknown): Record<string, unknown> {
  if (error instanceof HomeserverError && error.isFinal) return {};
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
    isDirect: record(invite?.content).is_direct === true,
  };
}

const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

const events = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : []);
