import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Seat } from "./windows.ts";

/** Something that a conversation has set out to do. */
export interface Todo {
  /** As people and agents name it; never used again in its conversation. */
  readonly number: number;
  readonly name: string;
  readonly isDone: boolean;
  /** Sources that its maker had been shown, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts among that. */
  readonly taint: readonly string[];
}

/** The call that makes todos: what it had been shown, they hold. */
interface Maker {
  /** Equal for one call, however often it is run. */
  readonly key: string;
  readonly sources: readonly RoomId[];
  readonly taint?: readonly string[];
}

/** A todo with all that was done for it. */
export interface TodoRecord extends Todo {
  readonly isRemoved: boolean;
  readonly createdAt: Date;
  readonly doneAt: Date | null;
  /** The newest, oldest first; none whose sources the audience may not read. */
  readonly operations: readonly LinkedOperation[];
}

export interface LinkedOperation {
  readonly id: number;
  readonly tool: string;
  readonly summary: string;
  readonly state: string;
  readonly result: string | null;
  readonly error: string | null;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  /** Messages that it sent, as far as they have been delivered. */
  readonly messages: readonly { readonly roomId: RoomId; readonly eventId: EventId }[];
}

/** Todos of one conversation, done ones included. */
export const todosMax = 100;
const operationsShown = 50;

/** Agent and conversation to which todos belong; see `Windows`. */
type Place = Pick<Seat, "agent" | "owner" | "here">;

/**
 * Part of a statement: a conversation's todos that were not removed, or the one of this number, as far as everybody in
 * the audience may read them.
 */
const readable = (
  sql: Sql,
  { agent, owner, here }: Place,
  number?: number,
  audience: Fragment = sql`audience_of(${here}, ${owner})`,
) => {
  const which = number === undefined ? sql`removed_at is null` : sql`number = ${number}`;
  return sql`
    with audience as materialized (
      select ${audience} as readers
    ), named as materialized (
      select distinct unnest(sources || room_id) as source from todos where agent = ${agent} and room_id = ${here} and ${which}
    ), early as materialized (
      select source, since, until from named, audience, lateral unseen_by(readers, source)
    )
    select t.* from todos t where agent = ${agent} and room_id = ${here} and ${which}
      and not sources && array(
        select source from named, audience where source <> ${here} and not may_read(readers, source, ${owner}))
      and not exists (select 1 from early where source = any (t.sources || t.room_id) and t.place >= since and t.place < until)`;
};

const todoColumns = `number, name, done_at is not null as "isDone", sources, taint`;

/** Part of a statement: the todos that are shown to an audience, as JSON. */
export const selectShownTodos = (sql: Sql, place: Place, audience: Fragment) => sql`
  (select coalesce(jsonb_agg(jsonb_build_object('number', number, 'name', name, 'isDone', done_at is not null,
    'sources', sources, 'taint', taint)
    order by number), '[]') from (${readable(sql, place, undefined, audience)}) t)`;

export class Todos {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  list(place: Place): Promise<Todo[]> {
    return this.#database.run(
      (sql) => sql<Todo[]>`
        select ${sql.unsafe(todoColumns)} from (${readable(sql, place)}) t order by number`,
    );
  }

  /** Makes a todo of each name. Returns them; none where there would be more than `todosMax`. */
  add(place: Place, names: readonly string[], maker: Maker): Promise<Todo[]> {
    return this.#make(place, names, maker, false);
  }

  /** Puts these todos in place of all that there are. */
  replace(place: Place, names: readonly string[], maker: Maker): Promise<Todo[]> {
    return this.#make(place, names, maker, true);
  }

  #make(
    { agent, here }: Place,
    names: readonly string[],
    { key, sources, taint = [] }: Maker,
    isReplacing: boolean,
  ): Promise<Todo[]> {
    const keys = names.map((_, index) => `${key}.${index}`);
    return this.#database.run(
      (sql) => sql<Todo[]>`
        with known as (
          select * from todos where key = any (${keys}::text[])
        ), counted as (
          insert into conversations (agent, room_id, todos)
          select ${agent}, ${here}, ${names.length}
          where not exists (select 1 from known) and ${names.length} + (select count(*) from todos
            where agent = ${agent} and room_id = ${here} and removed_at is null and not ${isReplacing}) <= ${todosMax}
          on conflict (agent, room_id) do update set todos = conversations.todos + excluded.todos
          returning todos
        ), removed as (
          update todos set removed_at = now()
          where agent = ${agent} and room_id = ${here} and removed_at is null and ${isReplacing} and exists (select 1 from counted)
        ), made as (
          insert into todos (agent, room_id, number, name, key, sources, taint, place)
          select ${agent}, ${here}, counted.todos - ${names.length} + n.place, n.name, n.key, ${[...sources]}, ${[...taint]},
            coalesce((select min(place) from turns where agent = ${agent} and room_id = ${here} and state = 'running'), place_now())
          from counted, unnest(${[...names]}::text[], ${keys}::text[]) with ordinality as n(name, key, place)
          on conflict (key) do nothing
          returning *
        )
        select ${sql.unsafe(todoColumns)} from (table known union all table made) t order by number`,
    );
  }

  /** Undefined where there is none of this number. */
  async finish(place: Place, number: number): Promise<Todo | undefined> {
    const [todo] = await this.#database.run(
      (sql) => sql<Todo[]>`
        update todos set done_at = coalesce(done_at, now())
        where agent = ${place.agent} and room_id = ${place.here} and number = ${number} and removed_at is null
          and number in (select number from (${readable(sql, place, number)}) r)
        returning ${sql.unsafe(todoColumns)}`,
    );
    return todo;
  }

  /** Removes a todo; returns it also where it was removed already. */
  async remove(place: Place, number: number): Promise<Todo | undefined> {
    const [todo] = await this.#database.run(
      (sql) => sql<Todo[]>`
        update todos set removed_at = coalesce(removed_at, now())
        where agent = ${place.agent} and room_id = ${place.here} and number = ${number}
          and number in (select number from (${readable(sql, place, number)}) r)
        returning ${sql.unsafe(todoColumns)}`,
    );
    return todo;
  }

  /** Removes all, once for a key: what was added since stays. Returns how many there were. */
  async clear({ agent, here }: Place, key: string): Promise<number> {
    const [row] = await this.#database.run(
      (sql) => sql<{ count: number }[]>`
        with known as (
          select things from done where key = ${key}
        ), removed as (
          update todos set removed_at = now()
          where agent = ${agent} and room_id = ${here} and removed_at is null and not exists (select 1 from known)
          returning number
        ), recorded as (
          insert into done (key, things) select ${key}, coalesce(array_agg(number::text), '{}') from removed
          on conflict do nothing
        )
        select coalesce((select cardinality(things) from known), (select count(*) from removed)) as count`,
    );
    return row?.count ?? 0;
  }

  /** The one of this number; undefined where it is done or removed, or may not be read here. */
  async open(place: Place, number: number): Promise<Todo | undefined> {
    const todos = await this.list(place);
    return todos.find((todo) => todo.number === number && !todo.isDone);
  }

  async record(place: Place, number: number): Promise<TodoRecord | undefined> {
    const { agent, owner, here } = place;
    const [row] = await this.#database.run(
      (sql) => sql<TodoRecord[]>`
        select ${sql.unsafe(todoColumns)}, removed_at is not null as "isRemoved", created_at as "createdAt", done_at as "doneAt", (
          select coalesce(jsonb_agg(to_jsonb(done) order by id), '[]') from (
            select id, tool, summary, state, result, error, sources, taint, (
              select coalesce(jsonb_agg(jsonb_build_object('roomId', m.room_id, 'eventId', m.event_id) order by m.id), '[]')
              from outbox m where m.event_id is not null and m.kind in ('message', 'file', 'media', 'reaction')
                and m.key in (o.key, o.key || '.1', o.key || '.2', o.key || '.3', o.key || '.4')
            ) as messages
            from operations o
            where o.agent = ${agent} and o.room_id = ${here} and o.todo = ${number}
              and may_show((select audience_of(${here}, ${owner})), ${here}, o.sources || o.room_id, ${owner}, o.place)
            order by id desc limit ${operationsShown}) done
        ) as operations
        from (${readable(sql, place, number)}) t`,
    );
    return row;
  }
}
