import type { Database } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { insertWakes, type WakeDraft } from "./effects.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import type { Seat } from "./windows.ts";

export interface ScheduleDraft {
  /** Of the call that makes it: the same call makes one. */
  readonly key: string;
  readonly agent: AgentName;
  /** The conversation that it wakes. */
  readonly roomId: RoomId;
  /** Five fields; null: once, at `nextAt`. */
  readonly cron: string | null;
  /** IANA name of the zone whose clocks the expression means. */
  readonly timeZone: string;
  readonly text: string;
  /** In whose name it wakes. */
  readonly madeBy: UserId;
  /** Sources that its maker had been shown, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts among that. */
  readonly taint: readonly string[];
  readonly nextAt: Date;
}

export interface Schedule extends ScheduleDraft {
  readonly id: number;
  /** Place in history at which it was made. */
  readonly place: number;
}

/** One whose time has come. */
export interface DueSchedule extends Schedule {
  readonly userId: UserId;
  /** The agent is in the room, or it is its home. */
  readonly isAgentHere: boolean;
  /** True if its maker was in the room and has left. */
  readonly isMakerGone: boolean;
}

/** Schedules that one agent may have. */
export const schedulesMax = 50;

const columns = `s.id, s.key, s.agent, s.room_id as "roomId", s.cron, s.time_zone as "timeZone", s.text,
  s.made_by as "madeBy", s.sources, s.taint, s.place, s.next_at as "nextAt"`;

export class ScheduleTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(key: string): Promise<Schedule | undefined> {
    const [found] = await this.#database.run(
      (sql) => sql<Schedule[]>`select ${sql.unsafe(columns)} from schedules s where key = ${key}`,
    );
    return found;
  }

  /** Undefined: the agent has as many as it may. */
  async add(draft: ScheduleDraft): Promise<Schedule | undefined> {
    const [added] = await this.#database.run(
      (sql) => sql<Schedule[]>`
        with added as (
          insert into schedules (key, agent, room_id, cron, time_zone, text, made_by, sources, taint, next_at)
          select ${draft.key}, ${draft.agent}, ${draft.roomId}, ${draft.cron}, ${draft.timeZone}, ${draft.text}, ${draft.madeBy},
            ${[...draft.sources]}::text[], ${[...draft.taint]}::text[], ${draft.nextAt}::timestamptz
          where not exists (select 1 from schedules where key = ${draft.key})
            and (select count(*) from schedules where agent = ${draft.agent} and next_at is not null and removed_at is null) < ${schedulesMax}
          on conflict (key) do nothing returning *
        )
        select ${sql.unsafe(columns)} from added s
        union all select ${sql.unsafe(columns)} from schedules s where key = ${draft.key}`,
    );
    return added;
  }

  /** Lists schedules to come, the next first: of this conversation, and of others that all of its audience may read. */
  list(seat: Pick<Seat, "agent" | "owner" | "here">): Promise<Schedule[]> {
    return this.#database.run(
      (sql) => sql<Schedule[]>`
        select ${sql.unsafe(columns)} from schedules s
        where agent = ${seat.agent} and next_at is not null and removed_at is null
          and may_show((select audience_of(${seat.here}, ${seat.owner})), ${seat.here}, sources || room_id, ${seat.owner}, place)
        order by next_at, id`,
    );
  }

  /** Returns whether there was one to come. */
  async remove(agent: AgentName, id: number): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        update schedules set removed_at = now()
        where id = ${id} and agent = ${agent} and next_at is not null and removed_at is null returning id`,
    );
    return rows.length > 0;
  }

  /**
   * Those of agents that are at work, whose time has come by the database's clock, and in how many milliseconds it
   * comes for the next (null where there is none).
   */
  async due(): Promise<{ now: Date; due: readonly DueSchedule[]; nextInMs: number | null }> {
    const [row] = await this.#database.run(
      (sql) => sql<{ now: Date; due: DueSchedule[]; nextInMs: number | null }[]>`
        with soon as (
          select s.*, a.user_id from schedules s join agents a on a.name = s.agent
          where s.next_at is not null and s.removed_at is null and a.paused_at is null and a.deleted_at is null
          order by s.next_at limit 100
        )
        select now() as now,
          (select extract(epoch from min(next_at) - now()) * 1000 from soon where next_at > now())::float8 as "nextInMs",
          (select coalesce(jsonb_agg(to_jsonb(d)), '[]') from (
            select ${sql.unsafe(columns)}, s.user_id as "userId",
              s.room_id = '' or exists (
                select 1 from members m where m.room_id = s.room_id and m.user_id = s.user_id and m.membership = 'join') as "isAgentHere",
              exists (select 1 from members m
                where m.room_id = s.room_id and m.user_id = s.made_by and m.membership <> 'join') as "isMakerGone"
            from soon s where s.next_at <= now()) d) as due`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return { ...row, due: row.due.map((one) => ({ ...one, nextAt: new Date(one.nextAt) })) };
  }

  /**
   * Wakes the agent for a time that has come, and moves on to the next (null: it was the last), unless somebody else
   * has. Returns the conversation that was woken.
   */
  ring({ id, nextAt }: Pick<Schedule, "id" | "nextAt">, next: Date | null, wake: WakeDraft): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        with rung as (
          update schedules set next_at = ${next}::timestamptz
          where id = ${id} and next_at = ${nextAt}::timestamptz and removed_at is null returning id
        ), ${insertWakes(sql, [wake], "rung", undefined)}
        select agent, "roomId" from woken`,
    );
  }

  /** Ends a schedule: it wakes nobody any more. Returns true if this call ended it. */
  async end({ id, nextAt }: Pick<Schedule, "id" | "nextAt">, notice: readonly OutboxDraft[]): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ hasEnded: boolean }[]>`
        with ended as (
          update schedules set next_at = null
          where id = ${id} and next_at = ${nextAt}::timestamptz and removed_at is null returning id
        ), told as (${insertOutbox(sql, notice, "ended")})
        select exists (select 1 from ended) as "hasEnded"`,
    );
    return row?.hasEnded === true;
  }
}
