import { openDatabase } from "../../src/adapters/database/connection.ts";

// A process that opens the embedded database in the folder that it is given and writes one row after the other. Tells
// the number of each row when the database has acknowledged it.
const { run } = await openDatabase({ dir: process.argv[2] ?? "" });
await run((sql) => sql`create table if not exists written (n integer primary key)`);
for (let n = 1; ; n++) {
  await run((sql) => sql`insert into written (n) values (${n}) on conflict do nothing`);
  process.stdout.write(`${n}\n`);
}
