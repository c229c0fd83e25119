import { parseArgs } from "node:util";
import { PostgresServer } from "../support/postgres.ts";
import { postgresHindrance } from "../support/postgres-files.ts";
import { approval } from "./approval.ts";
import { burst } from "./burst.ts";
import { devices } from "./devices.ts";
import { economy } from "./economy.ts";
import { encryption } from "./encryption.ts";
import { files } from "./files.ts";
import { footprint } from "./footprint.ts";
import { gate } from "./gate.ts";
import { intake } from "./intake.ts";
import { latency } from "./latency.ts";
import { look } from "./look.ts";
import { prefix } from "./prefix.ts";
import { processes } from "./processes.ts";
import { recall } from "./recall.ts";
import { render } from "./render.ts";
import { restart } from "./restart.ts";
import { sandbox } from "./sandbox.ts";
import { scale } from "./scale.ts";
import { format, type Table } from "./table.ts";
import { web } from "./web.ts";
import { windows } from "./windows.ts";

// `npm run bench`, or `npm run bench -- NAME...` for some of them.
type Bench = (postgresUrl: string | undefined) => Promise<Table[]>;

const benches: Readonly<Record<string, Bench>> = {
  intake,
  latency,
  approval,
  burst,
  restart,
  sandbox,
  footprint,
  prefix,
  economy,
  encryption,
  devices,
  look,
  render,
  files,
  scale,
  windows,
  gate,
  processes,
  recall,
  web,
};

const { positionals } = parseArgs({ allowPositionals: true });
const unknown = positionals.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(", ")}; there are: ${Object.keys(benches).join(", ")}.`);
  process.exit(1);
}

// Ending by `exit` takes the processes of a bench along.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const given = process.env.TEST_POSTGRES_URL;
const missing = given ? undefined : await postgresHindrance();
if (missing) console.log(`Without PostgreSQL: ${missing}.\n`);
const server = given || missing ? undefined : await PostgresServer.create(console.log);
try {
  for (const [name, bench] of Object.entries(benches)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    for (const table of await bench(given ?? server?.url)) console.log(`${format(table)}\n`);
  }
} finally {
  await server?.dispose();
}
