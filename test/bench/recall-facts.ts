import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import type { UserId } from "../../src/base/lib/ids.ts";
import { MemoryUpkeep } from "../../src/domain/tables/memory-upkeep.ts";
import { addAgent, newRoom, setMember } from "../support/rows.ts";
import { memoryOf } from "./recall-speed.ts";
import type { Table } from "./table.ts";

const facts = 1_000;
/** Values of each, one a day after the other. */
const values = 4;

/** How often the newest value of a fact comes first, where it has been another one three times before. */
export async function supersededFacts(): Promise<Table> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-recall-facts-"));
  const database = await openDatabase({ dir });
  try {
    await migrate(database);
    const owner = "@owner:test" as UserId;
    const { name, userId } = await addAgent(database, owner);
    const who = { name, userId, owner };
    const rows: string[][] = [];
    for (const isKept of [true, false]) {
      const here = newRoom();
      for (const member of [userId, owner]) await setMember(database, here, member, "join");
      await database.sql`update rooms set kind = 'chat' where room_id = ${here}`;
      await database.sql`
        insert into interactions (kind, agent, room_id, place, tool, sender, at, sources, speaker, text, importance, fact_key)
        select case when ${isKept} then 'fact' else 'observation' end, case when ${isKept} then ${name}::text end, ${here},
          v * ${facts}::int + f, case when ${isKept} then 'set_fact' else 'message' end, ${owner},
          now() - make_interval(days => ${values}::int - v), array[${here}], 'owner',
          'owner: The code of gate' || f || ' is ' || (v * ${facts}::int + f) || '.', 0.7,
          case when ${isKept} then 'code of gate' || f end
        from generate_series(0, ${values - 1}::int) v, generate_series(0, ${facts - 1}::int) f order by v, f`;
      const upkeep = new MemoryUpkeep(database);
      while (await upkeep.countWords());
      await database.sql`analyze`;
      const memory = memoryOf(database, () => undefined);
      let newest = 0;
      for (let fact = 0; fact < facts; fact++) {
        const { found } = await memory.recall(who, here, { text: `What is the code of gate${fact}?`, limit: 5 });
        newest += Number(found[0]?.text === `The code of gate${fact} is ${(values - 1) * facts + fact}.`);
      }
      const share = ((100 * newest) / facts).toFixed(1);
      rows.push([isKept ? "kept by set_fact" : "said by a person", String(facts), `${share} %`, "≥ 95 %"]);
    }
    return {
      title: "Recall: the newest of four values of a fact comes first",
      columns: ["", "facts", "newest first", "goal"],
      rows,
      note: "by words, embedded database",
    };
  } finally {
    await database.close();
    await rm(dir, { recursive: true });
  }
}
