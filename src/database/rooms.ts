import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database, Json } from "./connection.ts";
import type { MemberChange } from "./routing.ts";

interface RoomAgent {
  readonly userId: UserId;
  readonly membership: "join" | "invite";
  readonly direct: boolean;
  /** Place in the room's history at which it came. */
  readonly since: number | null;
}

/** What the router has to know of a room before it can judge an event in it. */
export interface RoomContext {
  readonly kind: "chat" | "thoughts" | "control";
  /** Content of the state events that are kept, by type. */
  readonly state: Readonly<Record<string, Record<string, unknown>>>;
  readonly agents: readonly RoomAgent[];
  readonly humans: number;
  readonly botJoined: boolean;
  /** Stands above all power levels: who made the room, from version 12 on. */
  readonly creator: UserId | null;
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
    const [row] = await this.#database.run(
      (sql) => sql<RoomContext[]>`
        select coalesce((select kind from rooms where room_id = ${roomId}), 'chat') as kind,
          coalesce((select jsonb_object_agg(type, content) from room_state where room_id = ${roomId}), '{}') as state,
          coalesce((select jsonb_agg(jsonb_build_object('userId', user_id, 'membership', membership, 'direct', direct, 'since', joined_position) order by user_id)
            from members where room_id = ${roomId} and kind = 'agent' and membership in ('join', 'invite')), '[]') as agents,
          (select count(*) from members where room_id = ${roomId} and kind = 'human' and membership = 'join') as humans,
          exists (select 1 from members where room_id = ${roomId} and kind = 'bot' and membership = 'join') as "botJoined",
          room_creator(${roomId}) as creator`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
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
  async joined(roomId: RoomId): Promise<UserId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select user_id as "userId" from members where room_id = ${roomId} and membership = 'join'`,
    );
    return rows.map((row) => row.userId);
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
    await this.#database.run(
      (sql) => sql`
        with absence as (
          select coalesce(max(position), 0) as began from events
          where room_id = ${roomId} and position < ${position} and source <> 'history'
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

  /** Adds to history what was read from the homeserver when an agent joined: routed already, it wakes nobody. */
  async markAsHistory(roomId: RoomId, eventIds: readonly EventId[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with told as (
          update events set routed_at = now(), shown = true
          where event_id = any (${[...eventIds]}) and source = 'history' and routed_at is null
          returning length(content->>'body') as chars, sent_at
        )
        insert into rooms (room_id, shown_events, shown_chars, last_shown_at)
        select ${roomId}, count(*), coalesce(sum(chars), 0), max(sent_at) from told
        on conflict (room_id) do update set shown_events = rooms.shown_events + excluded.shown_events,
          shown_chars = rooms.shown_chars + excluded.shown_chars,
          last_shown_at = greatest(rooms.last_shown_at, excluded.last_shown_at)`,
    );
  }

  async setKind(roomId: RoomId, kind: RoomContext["kind"]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into rooms (room_id, kind) values (${roomId}, ${kind}) on conflict (room_id) do update set kind = excluded.kind`,
    );
  }
}
