import type { Database, Json } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { type Hearing, mayHear } from "./hearing.ts";
import { type EventMemory, rememberEvents } from "./interactions.ts";
import { isClosed, type MemberChange, visibilityType } from "./projection.ts";
import { contextColumns, type RoomContext } from "./room-context.ts";
import { isEncrypted, isUnwritable } from "./secrecy.ts";

/** A room as operators see it. */
export interface RoomListing {
  readonly roomId: RoomId;
  readonly kind: RoomContext["kind"];
  readonly name: string | null;
  readonly agents: readonly UserId[];
  readonly humans: number;
  /** Rooms there are in all. */
  readonly total: number;
}

/** Content on its way to a place: a room, a user ('@…'), or '' for the home of an agent of this owner. */
interface Cargo {
  readonly place: RoomId;
  /** Sources of everything that may be in it, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  readonly owner: UserId;
}

interface Passage {
  /** See `Rooms.mode`. */
  readonly mode: string | null;
  /** Somebody is there. */
  readonly isHeard: boolean;
  /** Everybody there may read all that may be in it. */
  readonly mayRead: boolean;
}

export interface RoomSnapshot {
  readonly members: readonly MemberChange[];
  readonly state: readonly { readonly type: string; readonly content: Json; readonly sender: UserId }[];
}

export class Rooms {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async context(roomId: RoomId): Promise<RoomContext> {
    const [row] = await this.#database.run((sql) => sql<RoomContext[]>`select ${contextColumns(sql, roomId)}`);
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /** See `isEncrypted`. */
  isEncrypted(roomId: RoomId): Promise<boolean> {
    return isEncrypted(this.#database, roomId);
  }

  /** See `isUnwritable`. */
  isUnwritable(roomId: RoomId): Promise<boolean> {
    return isUnwritable(this.#database, roomId);
  }

  async membership(roomId: RoomId, userId: UserId): Promise<string | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ membership: string }[]>`
        select membership from members where room_id = ${roomId} and user_id = ${userId}`,
    );
    return row?.membership;
  }

  /** Rooms of which the user is a joined member. */
  async joinedRooms(userId: UserId): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        select room_id as "roomId" from members where user_id = ${userId} and membership = 'join'`,
    );
    return rows.map((row) => row.roomId);
  }

  /** Memberships of agents and of the bot: what the bridge library wants to know. */
  ownMemberships(): Promise<{ roomId: RoomId; userId: UserId; membership: string }[]> {
    return this.#database.run(
      (sql) => sql<{ roomId: RoomId; userId: UserId; membership: string }[]>`
        select room_id as "roomId", user_id as "userId", membership from members where kind in ('agent', 'bot')`,
    );
  }

  /** Joined members of every kind. */
  async membersOf(roomId: RoomId): Promise<UserId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select user_id as "userId" from members where room_id = ${roomId} and membership = 'join'`,
    );
    return rows.map((row) => row.userId);
  }

  /** Finds which of these users are in which of these rooms. */
  joinedAmong(roomIds: readonly RoomId[], userIds: readonly UserId[]): Promise<{ roomId: RoomId; userId: UserId }[]> {
    return this.#database.run(
      (sql) => sql<{ roomId: RoomId; userId: UserId }[]>`
        select room_id as "roomId", user_id as "userId" from members
        where room_id = any (${[...roomIds]}) and user_id = any (${[...userIds]}) and membership = 'join'`,
    );
  }

  /** True if the homeserver has told us of somebody's join that is not routed yet. */
  async isAwaiting(roomId: RoomId): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isComing: boolean }[]>`select arriving(${roomId}) <> '{}' as "isComing"`,
    );
    return row?.isComing ?? false;
  }

  /** True if everybody in the room may hear it now. */
  async mayHear(hearing: Hearing): Promise<boolean> {
    const [row] = await this.#database.run((sql) => sql<{ may: boolean }[]>`select ${mayHear(sql, hearing)} as may`);
    return row?.may ?? false;
  }

  /** Joined humans. */
  async humans(roomId: RoomId): Promise<UserId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select user_id as "userId" from members where room_id = ${roomId} and kind = 'human' and membership = 'join'`,
    );
    return rows.map((row) => row.userId);
  }

  /**
   * Takes over a room's state as it was when an agent joined at `position`; what is known to be newer stays.
   * Members of whom we had not heard arrived in our absence, at an unknown time: after the last event that we were
   * pushed. What was read of the past for this join has its place behind that one, so none of it is closed to them.
   * Agents come with a join that we are told of.
   */
  async adopt(roomId: RoomId, snapshot: RoomSnapshot, position: number): Promise<void> {
    const visibility = snapshot.state.filter(({ type }) => type === visibilityType);
    const closed = visibility.map(({ content }) => isClosed(content));
    await this.#database.run(
      (sql) => sql`
        with absence as (
          select greatest(0, (
            select max(position) from events
            where room_id = ${roomId} and position < ${position} and source <> 'history' and shown
          ), (
            select max(position) from events
            where room_id = ${roomId} and position < ${position} and source <> 'history' and not shown
          )) as began
        ), members as (
          insert into members (room_id, user_id, membership, display_name, direct, kind, position, joined_position)
          select ${roomId}, m."userId", m.membership, m."displayName", false, m.kind, ${position}::float8,
            case when m.kind = 'agent' then ${position}::float8 else began end
          from absence, jsonb_to_recordset(${sql.json(snapshot.members as unknown as Json)})
            as m("userId" text, membership text, "displayName" text, kind text)
          on conflict (room_id, user_id) do update set membership = excluded.membership,
            display_name = excluded.display_name, position = excluded.position,
            joined_position = case when members.membership = 'join' and excluded.membership = 'join'
              then members.joined_position else excluded.joined_position end
          where excluded.position > members.position
        ), visibility as (
          insert into history_visibility (room_id, position, closed)
          select ${roomId}, ${position}::float8, v.closed::boolean from jsonb_array_elements(${sql.json(closed)}) v(closed)
          on conflict do nothing
        ), state as (
          insert into room_state (room_id, type, content, sender, position)
          select ${roomId}, s.type, s.content, s.sender, ${position}::float8
          from jsonb_to_recordset(${sql.json(snapshot.state as unknown as Json)}) as s(type text, content jsonb, sender text)
          on conflict (room_id, type) do update set content = excluded.content, sender = excluded.sender, position = excluded.position
          where excluded.position > room_state.position
        )
        insert into rooms (room_id) values (${roomId}) on conflict do nothing`,
    );
  }

  /**
   * Adds to history what was read from the homeserver when an agent joined, with what agents remember of it: routed
   * already, it wakes nobody. Edits are not shown.
   */
  async markAsHistory(roomId: RoomId, eventIds: EventId[], memories: readonly EventMemory[] = []): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with told as (
          update events e set routed_at = now(), shown = replaces is null,
            number = case when replaces is null then (select last_number(${roomId})) + o.next end
          from (
            select seq, row_number() over (order by replaces is not null, position, seq) as next from events
            where event_id = any (${eventIds}) and source = 'history' and routed_at is null
          ) o
          where o.seq = e.seq and routed_at is null
          returning length(content->>'body') as chars, received_at, shown
        ), ${rememberEvents(sql, memories, "told")}
        insert into rooms (room_id, shown_events, shown_chars, last_shown_at)
        select ${roomId}, count(*), coalesce(sum(chars), 0), max(received_at) from told where shown
        on conflict (room_id) do update set shown_events = rooms.shown_events + excluded.shown_events,
          shown_chars = rooms.shown_chars + excluded.shown_chars,
          last_shown_at = coalesce(excluded.last_shown_at, rooms.last_shown_at)`,
    );
  }

  async setKind(roomId: RoomId, kind: RoomContext["kind"]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into rooms (room_id, kind) values (${roomId}, ${kind}) on conflict (room_id) do update set kind = excluded.kind`,
    );
  }

  /** The strictest mode that holds for agents in a room; null where each agent's own does. */
  async mode(roomId: RoomId): Promise<string | null> {
    const [row] = await this.#database.run(
      (sql) => sql<{ mode: string | null }[]>`select mode from rooms where room_id = ${roomId}`,
    );
    return row?.mode ?? null;
  }

  async setMode(roomId: RoomId, mode: string | null): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into rooms (room_id, mode) values (${roomId}, ${mode}) on conflict (room_id) do update set mode = excluded.mode`,
    );
  }

  /** Reads what must be known of a room, and of the place that something goes to from there, before it is sent. */
  async passage(roomId: RoomId, { place, sources, owner }: Cargo): Promise<Passage> {
    const [row] = await this.#database.run(
      (sql) => sql<Passage[]>`
        select (select mode from rooms where room_id = ${roomId}) as mode,
          exists (select 1 from unnest(others) reader where reader not like '*%') as "isHeard",
          (select coalesce(bool_and(may_pass_on(others, audience, s, ${owner})), true) from unnest(${[...sources]}::text[]) s) as "mayRead"
        from (select audience_of(${place}, ${owner}) as others, audience_of(${roomId}, ${owner}) as audience) both_places`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  async controlRoom(): Promise<RoomId | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`select room_id as "roomId" from rooms where kind = 'control' limit 1`,
    );
    return row?.roomId;
  }

  /** Makes this room the control room, and the only one. */
  async setControlRoom(roomId: RoomId): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with others as (update rooms set kind = 'chat' where kind = 'control' and room_id <> ${roomId})
        insert into rooms (room_id, kind) values (${roomId}, 'control')
        on conflict (room_id) do update set kind = excluded.kind`,
    );
  }

  /** Up to where the bot has read the room; undefined where it has not. */
  async botToken(roomId: RoomId): Promise<string | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ token: string | null }[]>`select bot_token as token from rooms where room_id = ${roomId}`,
    );
    return row?.token ?? undefined;
  }

  /** Only after what was found is stored. */
  async botReadTo(roomId: RoomId, token: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into rooms (room_id, bot_token) values (${roomId}, ${token})
        on conflict (room_id) do update set bot_token = excluded.bot_token`,
    );
  }

  /** Rooms with agents or the bot in them, the one that was spoken in last first. */
  list(limit: number): Promise<RoomListing[]> {
    return this.#database.run(
      (sql) => sql<RoomListing[]>`
        select r.room_id as "roomId", r.kind, m.agents, m.humans, count(*) over () as total,
          (select content->>'name' from room_state s where s.room_id = r.room_id and s.type = 'm.room.name') as name
        from rooms r join lateral (
          select coalesce(jsonb_agg(user_id order by user_id) filter (where kind = 'agent'), '[]') as agents,
            count(*) filter (where kind = 'human') as humans, count(*) filter (where kind <> 'human') as ours
          from members where room_id = r.room_id and membership = 'join'
        ) m on m.ours > 0
        order by r.last_shown_at desc nulls last, r.room_id limit ${limit}`,
    );
  }

  /** Rooms that wait for the user to accept an invitation, with who sent it. */
  invitesOf(userId: UserId): Promise<{ roomId: RoomId; inviter: UserId; eventId: EventId }[]> {
    return this.#database.run(
      (sql) => sql<{ roomId: RoomId; inviter: UserId; eventId: EventId }[]>`
        select m.room_id as "roomId", e.sender as inviter, e.event_id as "eventId"
        from members m join lateral (
          select sender, event_id from events
          where room_id = m.room_id and type = 'm.room.member' and state_key = m.user_id order by position desc limit 1
        ) e on true
        where m.user_id = ${userId} and m.membership = 'invite'`,
    );
  }
}
