import type { Database } from "../../src/adapters/database/connection.ts";

/** Adds what somebody has said in a room to the memory; gives the ids, the oldest first. */
export async function addMemories({ sql }: Database, texts: readonly string[], room = "!room:test"): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    with added as (
      insert into interactions (kind, room_id, sources, speaker, text, importance)
      select 'observation', ${room}, array[${room}], '', text, 0.3
      from jsonb_array_elements_text(${sql.json([...texts])}) with ordinality as t(text, n) order by n
      returning id
    ), queued as (
      insert into interactions_to_embed select id from added
    )
    select id from added order by id`;
  return rows.map(({ id }) => id);
}
