import postgres from "postgres";
import { after, systemClock } from "../lib/clock.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import { openEmbedded } from "./embedded.ts";
import { planning } from "./planning.ts";
import { textArray } from "./text-array.ts";

export type Sql = postgres.Sql<{ bigint: number }>;
export type Json = postgres.JSONValue;
/** Part of a statement. */
export type Fragment = postgres.Fragment;

/** Where the data lives: a directory of the embedded database, or a PostgreSQL server. */
export type DatabaseLocation = { readonly dir: string } | { readonly url: string };

export interface Database {
  readonly sql: Sql;
  readonly location: DatabaseLocation;
  /**
   * Runs one statement, again where the connection went away under it. The statement may have been carried out
   * although its answer was lost, so it must be idempotent by key.
   */
  run<Result>(statement: (sql: Sql) => Promise<Result>): Promise<Result>;
  /** Of the embedded database only, which cannot be read by others while it is open: see `Embedded`. */
  readonly copyTo?: (dir: string) => Promise<void>;
  close(): Promise<void>;
}

const connectionLost = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
]);
/**
 * postgres.js (3.4.9) never settles a statement that was issued between the reset of its connection and the moment
 * the driver noticed: after this time it counts as lost.
 */
const patienceMs = 30_000;
const retryDelays = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];

const isLost = (error: unknown): boolean =>
  error instanceof Error && "code" in error && connectionLost.has(String(error.code));

/**
 * Opens the database. Throws a `UserError` when it cannot be reached or somebody else holds the directory.
 * @param onBegun called when it opens by itself from now on, in a thread of its own; never on a server
 */
export async function openDatabase(location: DatabaseLocation, onBegun?: () => void): Promise<Database> {
  const options = {
    onnotice: () => {},
    connect_timeout: 10,
    // Seconds. Without it ten connections that are lost together count as ten failures, and wait for 20 s.
    backoff: () => 0.1,
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    transform: { undefined: null },
  };
  let sql: Sql;
  let copyTo: Database["copyTo"];
  let closed = false;
  let release = async (): Promise<void> => {};
  if ("dir" in location) {
    const embedded = await openEmbedded(location.dir, onBegun);
    release = embedded.close;
    copyTo = embedded.copyTo;
    // postgres.js takes any duplex stream, although its types do not say so.
    const socket = { socket: embedded.socket } as unknown as postgres.Options<{ bigint: postgres.PostgresType }>;
    sql = postgres({ ...options, ...socket, host: "embedded", user: "postgres", database: "postgres", max: 1 }) as Sql;
  } else {
    // Asked for array types after connecting, a server that goes away ends the process by an unhandled rejection.
    const types = { ...options.types, textArray };
    sql = postgres(location.url, {
      ...options,
      types,
      connection: planning,
      fetch_types: false,
      max: 10,
    }) as unknown as Sql;
    await sql`select 1`.catch((error: unknown) => {
      throw new UserError(
        `database.url: PostgreSQL does not answer at ${withoutPassword(location.url)}: ${messageOf(error)}. ` +
          "Check that it runs, and that user, password and database name are right.",
      );
    });
  }
  return {
    sql,
    location,
    ...(copyTo && { copyTo }),
    async run(statement) {
      for (const delay of retryDelays) {
        try {
          return await withinPatience(statement(sql));
        } catch (error) {
          if (closed || !isLost(error)) throw error;
          await systemClock.sleep(delay);
        }
      }
      return withinPatience(statement(sql));
    },
    async close() {
      closed = true;
      await sql.end({ timeout: 5 });
      await release();
    },
  };
}

/** The result of a statement, or after this time an error as for a lost connection. */
export async function withinPatience<Result>(statement: Promise<Result>, ms = patienceMs): Promise<Result> {
  const lost = Promise.withResolvers<never>();
  const forget = after(ms, () => {
    lost.reject(Object.assign(new Error(`no answer within ${ms / 1000} s`), { code: "CONNECTION_CLOSED" }));
  });
  try {
    return await Promise.race([statement, lost.promise]);
  } finally {
    forget();
  }
}

const withoutPassword = (url: string): string => url.replace(/\/\/([^:@/]*):[^@/]*@/, "//$1:***@");
