import type { Database, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { insertWakes, type WakeDraft } from "./effects.ts";

/** Things that a step leaves open in its room, where the agent follows them up. */
export interface LeftOpen {
  /** Silence after which the agent is woken for it. */
  readonly waitSeconds: number;
  readonly isQuestion: boolean;
  readonly isPromise: boolean;
}

/** Silence in a room in which an agent has left something open. */
export interface Silence {
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly turnId: number;
  /** How often the agent was woken for it. */
  readonly rung: number;
  readonly waitSeconds: number;
  /** When the agent has asked something, or said that it would do something; null: it did not. */
  readonly questionAt: Date | null;
  readonly promiseAt: Date | null;
  /** Numbers of its open todos. */
  readonly todos: readonly number[];
}

/** Silence that has lasted long enough. */
export interface DueSilence extends Silence {
  readonly userId: UserId;
  /** Time since anything was said in the room. */
  readonly quietSeconds: number;
  /** People for whom the turn worked that has left it open, as far as they are still in the room. */
  readonly requesters: readonly UserId[];
}

/** Longest wait: what would have to wait longer has ended. */
export const waitMost = 86_400;

/** Todos that are named. */
const todosNamed = 10;

/** Names one silence as it was found: a later one, or one for which the agent was woken since, is another. */
type Known = Pick<Silence, "agent" | "roomId" | "turnId" | "rung">;

const isKnown = (sql: Sql, { agent, roomId, turnId, rung }: Known) => sql`
  agent = ${agent} and room_id = ${roomId} and turn_id = ${turnId} and rung = ${rung}`;

/** Expression on a row `s` of `silences`: a person has sent something into the room since. Both halves have an index. */
const hasBeenBroken = (sql: Sql) => {
  const word = sql`e.room_id = s.room_id and e.position > s.place and e.state_key is null and e.type <> 'm.room.redaction'
    and coalesce((select m.kind from members m where m.room_id = e.room_id and m.user_id = e.sender), 'human') = 'human'`;
  return sql`(exists (select 1 from events e where e.shown and ${word})
    or exists (select 1 from events e where not e.shown and ${word}))`;
};

/** Query: numbers of the open todos in the conversation of a row `s`. */
const openTodos = (sql: Sql) => sql`
  select number from todos t where t.agent = s.agent and t.room_id = s.room_id and done_at is null and removed_at is null`;

const silenceColumns = `s.agent, s.room_id as "roomId", s.turn_id as "turnId", s.rung, s.wait_seconds as "waitSeconds",
  s.question_at as "questionAt", s.promise_at as "promiseAt"`;

/**
 * Part of a statement that writes steps: what they leave open in the room of the turn `live`. Only a turn that a person's
 * word or a schedule has caused leaves anything open: agents cannot keep each other awake, and being woken for a silence
 * begins none. A turn that ends and leaves nothing open ends the silence before it.
 */
export const leaveOpen = (sql: Sql, { isPromise, isQuestion, waitSeconds }: LeftOpen, endsTurn: boolean) => sql`
  left_open as materialized (
    select s.agent, s.room_id, s.id, ${isQuestion || isPromise} or ${endsTurn} and exists (${openTodos(sql)}) as is_open from live s
    where s.room_id <> '' and exists (
      select 1 from wakes w where w.turn_id = s.id and (w.reason = 'schedule' or w.chain = w.event_id))
  ), opened as (
    insert into silences (agent, room_id, turn_id, place, question_at, promise_at, wait_seconds, next_at)
    select l.agent, l.room_id, l.id, place_now(), case when ${isQuestion} then now() end, case when ${isPromise} then now() end,
      ${waitSeconds}::integer, now() + make_interval(secs => ${waitSeconds}::integer)
    from left_open l
    where l.is_open and not exists (
      select 1 from conversations c where c.agent = l.agent and c.room_id = l.room_id and c.quiet_until > now())
    on conflict (agent, room_id) do update set turn_id = excluded.turn_id, place = excluded.place, since = excluded.since,
      question_at = coalesce(excluded.question_at, case when silences.turn_id = excluded.turn_id then silences.question_at end),
      promise_at = coalesce(excluded.promise_at, case when silences.turn_id = excluded.turn_id then silences.promise_at end),
      wait_seconds = excluded.wait_seconds, rung = 0, next_at = excluded.next_at
  ), filled as (
    delete from silences s using left_open l
    where s.agent = l.agent and s.room_id = l.room_id and s.turn_id <> l.id and not l.is_open and ${endsTurn}
  )`;

/** Order of wakes: those for which somebody has asked stand first. */
export const byUrgency = (sql: Sql) => sql`
  case when reason = 'default mode' then 2 when reason like 'quiet for %' then 1 else 0 end`;

/** Silences in which agents have left something open. One row for a conversation. */
export class SilenceTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Finds silences that have lasted long enough by the database's clock, and in how many milliseconds the next may have
   * (null where there is none). Ends those that are over, and lets those wait in which somebody else has said something.
   */
  async due(): Promise<{ readonly due: readonly DueSilence[]; readonly nextInMs: number | null }> {
    const [row] = await this.#database.run(
      (sql) => sql<{ due: readonly DueSilence[]; nextInMs: number | null }[]>`
        with late as materialized (
          select s.*, a.user_id, greatest(s.since, r.last_shown_at) as quiet_since, array(${openTodos(sql)} order by number limit ${todosNamed}) as todos,
            array(select m.user_id from turns t join members m on m.user_id = any (t.requesters)
              where t.id = s.turn_id and m.room_id = s.room_id and m.membership = 'join' order by m.user_id) as requesters,
            exists (select 1 from turns t where t.agent = s.agent and t.room_id = s.room_id and t.state in ('running', 'parked', 'ready'))
              or exists (select 1 from wakes w where w.agent = s.agent and w.room_id = s.room_id and w.turn_id is null) as is_at_work,
            ${hasBeenBroken(sql)} or a.deleted_at is not null
              or exists (select 1 from conversations c where c.agent = s.agent and c.room_id = s.room_id and c.quiet_until > now())
              or not exists (select 1 from members m where m.room_id = s.room_id and m.user_id = a.user_id and m.membership = 'join') as is_over
          from silences s join agents a on a.name = s.agent left join rooms r on r.room_id = s.room_id
          where s.next_at <= now() and a.paused_at is null
          order by s.next_at limit 100
        ), judged as materialized (
          select l.*, case
            when is_over or (question_at is null and promise_at is null and todos = '{}') or requesters = '{}' then 'over'
            when is_at_work then 'later'
            when quiet_since + make_interval(secs => wait_seconds) > now() then 'not yet'
            else 'due' end as fate
          from late l
        ), ended as (
          delete from silences s using judged j
          where j.fate = 'over' and s.agent = j.agent and s.room_id = j.room_id and s.turn_id = j.turn_id and s.rung = j.rung
        ), moved as (
          update silences s set next_at = j.quiet_since + make_interval(secs => j.wait_seconds) from judged j
          where j.fate = 'not yet' and s.agent = j.agent and s.room_id = j.room_id and s.turn_id = j.turn_id and s.rung = j.rung
          returning s.next_at
        )
        select (select extract(epoch from min(at) - now()) * 1000 from (
            select next_at as at from silences where next_at > now() union all select next_at from moved) soon)::float8 as "nextInMs",
          (select coalesce(jsonb_agg(to_jsonb(d) order by agent), '[]') from (
            select ${sql.unsafe(silenceColumns)}, s.user_id as "userId", s.todos, s.requesters,
              extract(epoch from now() - s.quiet_since)::float8 as "quietSeconds"
            from judged s where fate = 'due') d) as due`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return { ...row, due: row.due.map(withDates) };
  }

  /**
   * Wakes the agent for a silence, unless somebody else has, or a person has said something since it was found. The next
   * wait is twice as long; where that is too long, the silence is left alone. Returns the conversations that were woken.
   */
  ring(known: Known & Pick<Silence, "waitSeconds">, wakes: readonly WakeDraft[]): Promise<Conversation[]> {
    const next = 2 * known.waitSeconds;
    return this.#database.run((sql) => {
      const which = sql`${isKnown(sql, known)} and not ${hasBeenBroken(sql)}`;
      const ring =
        next > waitMost
          ? sql`delete from silences s where ${which} returning agent`
          : sql`update silences s set rung = rung + 1, wait_seconds = ${next}, next_at = now() + make_interval(secs => ${next}::integer)
              where ${which} returning agent`;
      return sql<Conversation[]>`
        with rung as (${ring}), ${insertWakes(sql, wakes, "rung", undefined)}
        select distinct agent, "roomId" from woken`;
    });
  }

  async end(known: Known): Promise<void> {
    await this.#database.run((sql) => sql`delete from silences where ${isKnown(sql, known)}`);
  }

  /** Has the agent follow nothing up in the conversation until then; null: from now on it may again. */
  async hush({ agent, roomId }: Conversation, until: Date | "always" | null): Promise<void> {
    const date = until instanceof Date ? until : null;
    await this.#database.run(
      (sql) => sql`
        with ended as (
          delete from silences where agent = ${agent} and room_id = ${roomId} and ${until !== null}
        )
        insert into conversations (agent, room_id, quiet_until)
        values (${agent}, ${roomId}, case when ${until === "always"} then 'infinity' else ${date}::timestamptz end)
        on conflict (agent, room_id) do update set quiet_until = excluded.quiet_until`,
    );
  }

  /** Until when the agent follows nothing up in the conversation; undefined: it may. */
  async hushedUntil({ agent, roomId }: Conversation): Promise<Date | "always" | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isAlways: boolean; until: Date | null }[]>`
        select quiet_until = 'infinity' as "isAlways", case when quiet_until < 'infinity' then quiet_until end as until
        from conversations where agent = ${agent} and room_id = ${roomId} and quiet_until > now()`,
    );
    return row && (row.isAlways ? "always" : (row.until ?? undefined));
  }
}

/** JSON carries times as texts. */
const withDates = (silence: DueSilence): DueSilence => ({
  ...silence,
  questionAt: silence.questionAt && new Date(silence.questionAt),
  promiseAt: silence.promiseAt && new Date(silence.promiseAt),
});
