import type { Database } from "../../adapters/database/connection.ts";
import { digest } from "../../base/lib/ids.ts";
import { rowsAtOnce, TextVectors } from "./text-vectors.ts";

/** A model, and how many numbers its vectors have. */
export interface VectorModel {
  readonly model: string;
  readonly dimensions: number;
}

/** The index of pgvector takes no longer vectors: those are compared one by one. */
const dimensionsIndexed = 2_000;

/** Vectors of what agents remember, and the texts that wait for theirs. */
export class InteractionVectors extends TextVectors {
  constructor(database: Database) {
    super(database, {
      texts: "interactions",
      text: (sql) => sql`t.text`,
      vectors: "interaction_vectors",
      waiting: "interactions_to_embed",
      id: "interaction_id",
    });
  }

  /** Makes this the present model. What has no vector of it is looked for by `queue`. */
  async choose({ model, dimensions }: VectorModel): Promise<void> {
    await this.database.run(
      (sql) => sql`
        with present as (
          select 1 from embedding_models where model = ${model} and dimensions = ${dimensions} and is_present
        ), past as (
          update embedding_models set is_present = false
          where is_present and model <> ${model} and not exists (select 1 from present) returning 1
        )
        insert into embedding_models (model, dimensions, is_present, below)
        select ${model}, ${dimensions}, true, (select coalesce(max(id), 0) + 1 from interactions)
        from (select count(*) from past) p where not exists (select 1 from present)
        on conflict (model) do update set dimensions = excluded.dimensions, is_present = true, below = excluded.below,
          chosen_at = now()`,
    );
  }

  /**
   * Makes the index by which vectors of the model are found. It is made while there are few, and grows with them; one
   * that was left unfinished is made anew. On a server nobody waits for it.
   */
  async index({ model, dimensions }: VectorModel): Promise<void> {
    if (dimensions > dimensionsIndexed) return;
    const { sql, location } = this.database;
    const name = indexName({ model, dimensions });
    const [found] = await sql<{ isValid: boolean }[]>`
      select indisvalid as "isValid" from pg_index where indexrelid = to_regclass(${name})`;
    if (found?.isValid) return;
    const concurrently = "url" in location ? "concurrently" : "";
    if (found) await sql.unsafe(`drop index ${concurrently} if exists ${name}`);
    await sql.unsafe(
      `create index ${concurrently} if not exists ${name} on interaction_vectors ` +
        `using hnsw ((vector::vector(${dimensions})) vector_cosine_ops) where model = '${model.replaceAll("'", "''")}'`,
    );
  }

  /** Queues some interactions that have no vector of the model, the newest first. @returns true if there may be more */
  async queue(model: string): Promise<boolean> {
    const [row] = await this.database.run(
      (sql) => sql<{ below: number }[]>`
        with part as (
          select id from interactions
          where id < (select below from embedding_models where model = ${model} and is_present)
          order by id desc limit ${rowsAtOnce}
        ), queued as (
          insert into interactions_to_embed
          select id from part
          where not exists (select 1 from interaction_vectors v where v.interaction_id = part.id and v.model = ${model})
          order by id
          on conflict do nothing
        )
        update embedding_models set below = (select coalesce(min(id), 0) from part)
        where model = ${model} and is_present and below > 0
        returning below`,
    );
    return (row?.below ?? 0) > 0;
  }

  /** Removes some vectors of the models before. @returns true if there may be more */
  async retire(model: string): Promise<boolean> {
    const [other] = await this.database.run(
      (sql) => sql<VectorModel[]>`
        select model, dimensions from embedding_models
        where model <> ${model} and exists (select 1 from embedding_models where model = ${model} and is_present)
        order by chosen_at limit 1`,
    );
    if (!other) return false;
    const { sql, location } = this.database;
    await sql.unsafe(`drop index ${"url" in location ? "concurrently" : ""} if exists ${indexName(other)}`);
    await this.database.run(
      (run) => run`
        with part as (
          select interaction_id, chunk from interaction_vectors where model = ${other.model} limit ${rowsAtOnce}
        ), removed as (
          delete from interaction_vectors v using part p
          where v.interaction_id = p.interaction_id and v.chunk = p.chunk and v.model = ${other.model}
        )
        delete from embedding_models where model = ${other.model} and not is_present and not exists (select 1 from part)`,
    );
    return true;
  }
}

const indexName = ({ model, dimensions }: VectorModel): string =>
  `interaction_vectors_${Buffer.from(digest(model, dimensions), "base64url").toString("hex").slice(0, 16)}`;
