import type { Database } from "../../adapters/database/connection.ts";
import { rowsAtOnce, TextVectors } from "./text-vectors.ts";

/** Vectors of what agents know. `InteractionVectors` keeps the models. */
export class KnowledgeVectors extends TextVectors {
  constructor(database: Database) {
    super(database, {
      texts: "knowledge",
      text: (sql) => sql`case when t.title = '' then t.text else t.title || ': ' || t.text end`,
      vectors: "knowledge_vectors",
      waiting: "knowledge_to_embed",
      id: "knowledge_id",
    });
  }

  /** Queues all entries that have no vector of the model. @returns true if there may be more */
  async queue(model: string): Promise<boolean> {
    await this.database.run(
      (sql) => sql`
        insert into knowledge_to_embed
        select id from knowledge k
        where not exists (select 1 from knowledge_vectors v where v.knowledge_id = k.id and v.model = ${model})
        on conflict do nothing`,
    );
    return false;
  }

  /** Removes some vectors of other models. @returns true if there may be more */
  async retire(model: string): Promise<boolean> {
    const rows = await this.database.run(
      (sql) => sql`
        delete from knowledge_vectors where ctid in (
          select ctid from knowledge_vectors where model <> ${model} limit ${rowsAtOnce})
        returning 1`,
    );
    return rows.length === rowsAtOnce;
  }
}
