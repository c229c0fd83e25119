import type { EventId, RoomId } from "../lib/ids.ts";
import type { Database, Sql } from "./connection.ts";
import type { Seat } from "./windows.ts";

/** Something that a conversation has set out to do. */
export interface Todo {
  /** As people and agents name it; never used again in its conversation. */
  readonly number: number;
  readonly name: string;
  readonly done: boolean;
  /** What whoever made it had been shown, as `may_read` names it. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts among that. */
  readonly taint: readonly string[];
}

/** The call that makes todos: what it had been shown, they hold. */
interface Maker {
  /** The same for the same call, however often it is run. */
  readonly key: string;
  readonly sources: readonly RoomId[];
  readonly taint?: readonly string[];
}

/** A todo with all that was done for it. */
export interface TodoRecord extends Todo {
  readonly removed: boolean;
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
  /** What it sent, as far as it has been delivered. */
  readonly messages: readonly { readonly roomId: RoomId; readonly eventId: EventId }[];
}

/** Todos of one conversation, done ones included. */
export const todosMax = 100;
const operationsShown = 50;

/** Whose todos; see `Windows`. */
type Place = Pick<Seat, "agent" | "owner" | "here">;

/**
 * Part of a statement: a conversation's todos that were not removed, or the one of this number, as far as everybody in
 * the audience may read them.
 */
const readable = (sql: Sql, { agent, owner, here }: Place, number?: number) => {
  const which = number === undefined ? sql`removed_at is null` : sql`number = ${number}`;
  return sql`
    select * from todos where agent = ${agent} and room_id = ${here} and ${which} and not sources && array(
      select s from (select distinct unnest(sources) as s from todos where agent = ${agent} and room_id = ${here} and ${which}) shown
      where s <> ${here} and not may_read(audience_of(${here}, ${owner}), s, ${owner}))`;
};

const todoColumns = `number, name, done_at is not null as done, sources, taint`;

/** Part of a statement: the todos that are shown, as JSON. */
export const todosShown = (sql: Sql, place: Place) => sql`
  (select coalesce(jsonb_agg(jsonb_build_object('number', number, 'name', name, 'done', done_at is not null,
    'sources', sources, 'taint', taint)
    order by number), '[]') from (${readable(sql, place)}) t)`;

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

  /** The same in place of all that there are. */
  replace(place: Place, names: readonly string[], maker: Maker): Promise<Todo[]> {
    return this.#make(place, names, maker, true);
  }

  #make(
    { agent, here }: Place,
    names: readonly string[],
    { key, sources, taint = [] }: Maker,
    replacing: boolean,
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
            where agent = ${agent} and room_id = ${here} and removed_at is null and not ${replacing}) <= ${todosMax}
          on conflict (agent, room_id) do update set todos = conversations.todos + excluded.todos
          returning todos
        ), removed as (
          update todos set removed_at = now()
          where agent = ${agent} and room_id = ${here} and removed_at is null and ${replacing} and exists (select 1 from counted)
        ), made as (
          insert into todos (agent, room_id, number, name, key, sources, taint)
          select ${agent}, ${here}, counted.todos - ${names.length} + n.place, n.name, n.key, ${[...sources]}, ${[...taint]}
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

  /** The same for one that was removed already. */
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

  /** Removes all. Returns how many there were. */
  async clear({ agent, here }: Place): Promise<number> {
    const rows = await this.#database.run(
      (sql) => sql`
        update todos set removed_at = now() where agent = ${agent} and room_id = ${here} and removed_at is null returning number`,
    );
    return rows.length;
  }

  /** The one of this number; undefined where it is done or removed, or may not be read here. */
  async open(place: Place, number: number): Promise<Todo | undefined> {
    const todos = await this.list(place);
    return todos.find((todo) => todo.number === number && !todo.done);
  }

  async record(place: Place, number: number): Promise<TodoRecord | undefined> {
    const { agent, owner, here } = place;
    const [row] = await this.#database.run(
      (sql) => sql<TodoRecord[]>`
        select ${sql.unsafe(todoColumns)}, removed_at is not null as removed, created_at as "createdAt", done_at as "doneAt", (
          select coalesce(jsonb_agg(to_jsonb(done) order by id), '[]') from (
            select id, tool, summary, state, result, error, sources, taint, (
              select coalesce(jsonb_agg(jsonb_build_object('roomId', m.room_id, 'eventId', m.event_id) order by m.id), '[]')
              from outbox m where m.event_id is not null and m.kind in ('message', 'file', 'media', 'reaction')
                and m.key in (o.key, o.key || '.1', o.key || '.2', o.key || '.3', o.key || '.4')
            ) as messages
            from operations o
            where o.agent = ${agent} and o.room_id = ${here} and o.todo = ${number} and not exists (
              select 1 from unnest(o.sources) s
              where s <> ${here} and not may_read(audience_of(${here}, ${owner}), s, ${owner}))
            order by id desc limit ${operationsShown}) done
        ) as operations
        from (${readable(sql, place, number)}) t`,
    );
    return row;
  }
}
