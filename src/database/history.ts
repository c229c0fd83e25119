import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";
import type { StoredEvent } from "./events.ts";
import { eventColumns } from "./events.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";

/** Who looks: an agent in one of its conversations, for the humans in it. */
export interface Viewer {
  readonly agent: AgentName;
  readonly userId: UserId;
  readonly owner: UserId;
  /** The conversation's room, '' at home. */
  readonly here: RoomId;
  readonly audience: readonly UserId[];
}

export interface RoomRow {
  readonly roomId: RoomId;
  readonly name: string | null;
  readonly direct: boolean;
  readonly readable: boolean;
  readonly unread: number;
  readonly seenPosition: number;
  readonly shownEvents: number;
  readonly shownChars: number;
  /** Content of `m.room.power_levels`. */
  readonly powerLevels: Record<string, unknown> | null;
  /** Stands above all power levels: who made the room, from version 12 on. */
  readonly creator: UserId | null;
  /** How many rooms there are in all. */
  readonly total: number;
}

export interface MemberRow {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly displayName: string | null;
  readonly total: number;
}

/** What a conversation may see of the rooms its agent is in. Walls are checked here, in SQL, before anything is taken. */
export class History {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The conversation's own room first, then the others by their last activity. */
  rooms(viewer: Viewer, limit: number): Promise<RoomRow[]> {
    const { here, audience, owner, userId, agent } = viewer;
    return this.#database.run(
      (sql) => sql<RoomRow[]>`
        with mine as (
          select m.room_id, m.direct, r.shown_events, r.shown_chars, r.last_shown_at, count(*) over () as total,
            coalesce(c.seen_position, 0) as seen
          from members m join rooms r using (room_id)
            left join conversations c on c.agent = ${agent} and c.room_id = m.room_id
          where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat'
          order by m.room_id = ${here} desc, r.last_shown_at desc nulls last, m.room_id
          limit ${limit}
        )
        select room_id as "roomId", direct, shown_events as "shownEvents", shown_chars as "shownChars", total, seen as "seenPosition",
          room_id = ${here} or may_read(${[...audience]}, room_id, ${owner}) as readable,
          coalesce(
            (select nullif(content->>'name', '') from room_state s where s.room_id = mine.room_id and s.type = 'm.room.name'),
            (select content->>'alias' from room_state s where s.room_id = mine.room_id and s.type = 'm.room.canonical_alias')) as name,
          (select content from room_state s where s.room_id = mine.room_id and s.type = 'm.room.power_levels') as "powerLevels",
          room_creator(mine.room_id) as creator,
          (select count(*) from (
            select 1 from events e where e.room_id = mine.room_id and e.shown and e.position > mine.seen and e.sender <> ${userId}
            limit 1000) u) as unread
        from mine
        order by room_id = ${here} desc, last_shown_at desc nulls last, room_id`,
    );
  }

  /**
   * The newest events of each room, oldest first. Of the conversation's own room nothing from the first event on that
   * waits for a later turn, except what the agent itself said; `always` names events of that room that are shown
   * however old they are. One statement: an event that comes meanwhile is either waiting or not there yet.
   */
  events(
    viewer: Viewer,
    roomIds: readonly RoomId[],
    perRoom: number,
    always: readonly EventId[],
  ): Promise<StoredEvent[]> {
    return this.#database.run(
      (sql) => sql<StoredEvent[]>`
        with waiting as (
          select coalesce(min(position), 'infinity') as first from wakes
          where agent = ${viewer.agent} and room_id = ${viewer.here} and turn_id is null
        ), visible as (
          select room_id, history_floor(${[...viewer.audience]}, room_id) as floor from unnest(${[...roomIds]}::text[]) as r(room_id)
        ), newest as (
          select e.* from visible v cross join lateral (
            select * from events e
            where e.room_id = v.room_id and e.shown and e.redacted_at is null and e.position >= v.floor
              and (e.room_id <> ${viewer.here} or e.sender = ${viewer.userId} or e.position < (select first from waiting))
            order by e.position desc limit ${perRoom}
          ) e
          union
          select e.* from visible v join events e on e.room_id = v.room_id
          where e.event_id = any (${[...always]}) and e.room_id = ${viewer.here} and e.redacted_at is null and e.position >= v.floor
        )
        select ${sql.unsafe(eventColumns)} from newest e order by e.room_id, e.position`,
    );
  }

  /** Joined members of each room, at most `perRoom`: agents and admins first. */
  members(roomIds: readonly RoomId[], first: readonly UserId[], perRoom: number): Promise<MemberRow[]> {
    return this.#database.run(
      (sql) => sql<MemberRow[]>`
        select m.* from unnest(${[...roomIds]}::text[]) as r(room_id) cross join lateral (
          select room_id as "roomId", user_id as "userId", display_name as "displayName", count(*) over () as total
          from members where members.room_id = r.room_id and membership = 'join'
          order by user_id = any (${[...first]}) desc, kind = 'agent' desc, user_id limit ${perRoom}
        ) m`,
    );
  }

  /** Whether everybody in the audience may read all of the sources. */
  async mayReadAll(audience: readonly UserId[], sources: readonly RoomId[], owner: UserId): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ allowed: boolean }[]>`
        select coalesce(bool_and(may_read(${[...audience]}, s, ${owner})), true) as allowed
        from unnest(${[...sources]}::text[]) as s`,
    );
    return row?.allowed ?? false;
  }

  /** Entries of the ephemeris from other turns, oldest first; none whose sources the audience may not read. */
  async ephemeris(viewer: Viewer, turnId: number, since: Date | null, limit: number): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ entry: string }[]>`
        select entry from (
          select * from ephemeris
          where user_id = ${viewer.userId} and turn_id <> ${turnId} and (${since}::timestamptz is null or created_at >= ${since})
          order by id desc limit 500
        ) recent
        where (
          select bool_and(s = ${viewer.here} or may_read(${[...viewer.audience]}, s, ${viewer.owner}))
          from unnest(sources || room_id::text) as s)
        order by id desc limit ${limit}`,
    );
    return rows.map((row) => row.entry).reverse();
  }

  /** Thoughts and calls that the agent's thoughts room has not been shown, oldest first. */
  untold(agent: AgentName, limit: number): Promise<{ id: number; entry: string }[]> {
    return this.#database.run(
      (sql) => sql<{ id: number; entry: string }[]>`
        select e.id, e.entry from ephemeris e join agents a on a.user_id = e.user_id
        where a.name = ${agent} and e.id > a.thoughts_posted order by e.id limit ${limit}`,
    );
  }

  /** Queues what the thoughts room is told, and remembers that it was: up to the entry `upTo`. */
  async tell(agent: AgentName, upTo: number, drafts: readonly OutboxDraft[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with told as (
          update agents set thoughts_posted = ${upTo} where name = ${agent} and thoughts_posted < ${upTo} returning name
        )
        ${insertOutbox(sql, drafts, "told")}`,
    );
  }
}
