import { toSql } from "pgvector";
import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import { messageOf } from "../../base/lib/errors.ts";

/** A text without vectors. */
export interface Unembedded {
  readonly id: number;
  readonly text: string;
}

/** A text with the vectors of its chunks: of none, where it cannot be embedded. */
export interface EmbeddedText extends Unembedded {
  readonly vectors: readonly Float32Array[];
}

/** Tables of texts and of their vectors. */
interface VectorTables {
  /** Table with the texts; its row is `t` below. */
  readonly texts: string;
  /** Text of a row `t` of which its vectors are made. */
  readonly text: (sql: Sql) => Fragment;
  readonly vectors: string;
  /** Table of the texts that wait. */
  readonly waiting: string;
  /** Column of both that names the text. */
  readonly id: string;
}

/** Rows of one statement, where all have to be gone through. */
export const rowsAtOnce = 10_000;

/** Vectors of texts, and the texts that wait for theirs. */
export class TextVectors {
  protected readonly database: Database;
  readonly #tables: VectorTables;

  constructor(database: Database, tables: VectorTables) {
    this.database = database;
    this.#tables = tables;
  }

  /** Prepares the table for vectors, where the extension came later than the table. @returns why there can be none */
  async prepare(): Promise<string | undefined> {
    const { vectors } = this.#tables;
    const [row] = await this.database.run(
      (sql) => sql<{ isThere: boolean }[]>`
        select exists (select 1 from pg_attribute where attrelid = ${vectors}::regclass and attname = 'vector') as "isThere"`,
    );
    if (row?.isThere) return undefined;
    try {
      const { sql } = this.database;
      await sql`create extension if not exists vector`;
      await sql`alter table ${sql(vectors)} add column if not exists vector vector not null`;
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Texts that wait for vectors, the newest first. */
  next(most: number): Promise<Unembedded[]> {
    const { id, text, texts, waiting } = this.#tables;
    return this.database.run(
      (sql) => sql<Unembedded[]>`
        select t.id, ${text(sql)} as text
        from (select ${sql(id)} as id from ${sql(waiting)} order by ${sql(id)} desc limit ${most}) q
          join ${sql(texts)} t on t.id = q.id
        order by t.id desc`,
    );
  }

  /** Stores vectors of texts that are still the same; what has been changed or taken back meanwhile gets none. */
  async store(model: string, embedded: readonly EmbeddedText[]): Promise<void> {
    const { id, text, texts, vectors, waiting } = this.#tables;
    const rows = embedded.map((one) => ({
      id: one.id,
      text: one.text,
      vectors: one.vectors.map((vector) => toSql([...vector])),
    }));
    await this.database.run(
      (sql) => sql`
        with given as (
          select * from jsonb_to_recordset(${sql.json(rows as unknown as Json)}) as g(id bigint, text text, vectors jsonb)
        ), unchanged as (
          select t.id, g.vectors from ${sql(texts)} t join given g on g.id = t.id and g.text = ${text(sql)}
          order by t.id for no key update of t
        ), superfluous as (
          delete from ${sql(vectors)} v using unchanged u
          where v.${sql(id)} = u.id and v.model = ${model} and v.chunk >= jsonb_array_length(u.vectors)
        ), stored as (
          insert into ${sql(vectors)} (${sql(id)}, model, chunk, vector)
          select u.id, ${model}, v.place - 1, v.vector::vector
          from unchanged u, jsonb_array_elements_text(u.vectors) with ordinality as v(vector, place)
          on conflict (${sql(id)}, model, chunk) do update set vector = excluded.vector
        )
        delete from ${sql(waiting)} where ${sql(id)} in (select id from unchanged)`,
    );
  }

  /** Counts texts that wait for vectors; not all of those that `queue` looks for are among them before it has ended. */
  async waiting(): Promise<number> {
    const [row] = await this.database.run(
      (sql) => sql<{ count: number }[]>`select count(*)::int as count from ${sql(this.#tables.waiting)}`,
    );
    return row?.count ?? 0;
  }
}
