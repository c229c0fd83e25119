import postgres from "postgres";
import { callAfter, systemClock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { openEmbedded } from "./embedded.ts";
import { failureOf, translate } from "./failure.ts";
import { planning } from "./planning.ts";
import { textArray } from "./text-array.ts";

export type Sql = postgres.Sql<{ bigint: number }>;
export type Json = postgres.JSONValue;
/** Part of a statement. */
export type Fragment = postgres.Fragment;

/** Place of the data: a directory of the embedded database, or a PostgreSQL server. */
export type DatabaseLocation = { readonly dir: string } | { readonly url: string };

type Patience = "none" | undefined;

export interface Database {
  readonly sql: Sql;
  readonly location: DatabaseLocation;
  /**
   * Runs one statement, again where the connection went away under it, and for a while where the database is unwell.
   * The statement may have been carried out although its answer was lost, so it must be idempotent by key.
   * @param patience `none`: for whoever is asked again anyway: what an unwell database refuses is not tried again here
   * @throws RetryError where the database stays unwell; UserError where it cannot take what it is given
   */
  run<Result>(statement: (sql: Sql) => Promise<Result>, patience?: Patience): Promise<Result>;
  /** True if the database takes writes, and has refused none lately. Never rejects. */
  isWell(): Promise<boolean>;
  /** Of the embedded database only, which cannot be read by others while it is open: see `Embedded`. */
  readonly copyTo?: (dir: string) => Promise<void>;
  close(): Promise<void>;
}

/**
 * postgres.js (3.4.9) never settles a statement that was issued between the reset of its connection and the moment
 * the driver noticed: after this time it counts as lost.
 */
const patienceMs = 30_000;
const retryDelays = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];

/** Time for which a refusal counts: nobody knows that it has been mended. */
const refusalCountsMs = 15_000;
/** Longest wait for the answer that all is well. */
const answerMs = 2_000;

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
  let isClosed = false;
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
  const never = Number.NEGATIVE_INFINITY;
  /** Time of the last refused statement that has not been carried out since. */
  let refusedAt = never;
  return {
    sql,
    location,
    ...(copyTo && { copyTo }),
    async run(statement, patience) {
      let isRefused = false;
      for (const delay of [...retryDelays, undefined]) {
        try {
          const result = await withinPatience(statement(sql));
          if (isRefused) refusedAt = never;
          return result;
        } catch (error) {
          const failure = failureOf(error);
          if (failure === "unavailable") {
            isRefused = true;
            refusedAt = systemClock.monotonic();
          }
          const mayTryAgain = failure === "lost" || failure === "collision" || (isRefused && patience !== "none");
          if (isClosed || !mayTryAgain || delay === undefined) throw translate(error);
          await systemClock.sleep(delay);
        }
      }
      throw new Error("the last attempt neither succeeded nor failed");
    },
    async isWell() {
      if (systemClock.monotonic() - refusedAt < refusalCountsMs) return false;
      // A lock is written down like a change, and leaves nothing behind.
      const locked = sql`select 1 from migrations order by name limit 1 for update`;
      const failed = await withinPatience(locked, answerMs).then(() => undefined, failureOf);
      return failed === undefined;
    },
    async close() {
      isClosed = true;
      await sql.end({ timeout: 5 });
      await release();
    },
  };
}

/** The database for whoever is asked again anyway, and had better say at once that it cannot now: see `Database.run`. */
export const withoutPatience = (database: Database): Database => ({
  ...database,
  run: (statement) => database.run(statement, "none"),
});

/** The result of a statement, or after this time an error as for a lost connection. */
export async function withinPatience<Result>(statement: Promise<Result>, ms = patienceMs): Promise<Result> {
  const lost = Promise.withResolvers<never>();
  const forget = callAfter(ms, () => {
    lost.reject(Object.assign(new Error(`no answer within ${ms / 1000} s`), { code: "CONNECTION_CLOSED" }));
  });
  try {
    return await Promise.race([statement, lost.promise]);
  } finally {
    forget();
  }
}

const withoutPassword = (url: string): string => url.replace(/\/\/([^:@/]*):[^@/]*@/, "//$1:***@");
