import postgres from "postgres";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Database } from "./connection.ts";

/**
 * Topics of notifications: rooms with something to route or to send, work that waits, leases that were given back, devices that somebody waits for, servers whose tools are others, …
 */
type Topic =
  | "events"
  | "outbox"
  | "turns"
  | "shards"
  | "stop"
  | "permissions"
  | "doorbell"
  | "sweep"
  | "reload"
  | "devices"
  | "servers";

/** Called with what another process told; with nothing after a time in which word may have been missed. */
type Hear = (about: readonly string[] | undefined) => void;

/** A process tells the others on the same database. Word may be lost: whoever waits for it also looks by itself. */
export interface Notifier {
  /** Soon, in the order of the calls; never throws. Not heard by this process itself. */
  tell(topic: Topic, about?: readonly string[]): void;
  on(topic: Topic, hear: Hear): void;
  close(): Promise<void>;
}

const channel = "clevernet";
const relistenAfterMs = 200;
/** PostgreSQL takes less than 8,000 bytes at once. */
const longestWord = 7_500;

interface Word {
  readonly from: string;
  readonly topic: Topic;
  readonly about: readonly string[];
}

/** For a process that is the only one. */
export const nobodyElse: Notifier = { tell() {}, on() {}, async close() {} };

/** By LISTEN and NOTIFY on PostgreSQL; the embedded database has one process, which has nobody to tell. */
export async function openNotifier(database: Database, clock: Clock, log: Log): Promise<Notifier> {
  if ("dir" in database.location) return nobodyElse;
  const notifier = new PostgresNotifier(database, clock, log);
  await notifier.listen(database.location.url);
  return notifier;
}

class PostgresNotifier implements Notifier {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #me = secret(8);
  readonly #hearers: { readonly topic: Topic; readonly hear: Hear }[] = [];
  readonly #closing = new AbortController();
  #untold: string[] = [];
  #telling: Promise<void> | undefined;
  #ear: Ear | undefined;

  constructor(database: Database, clock: Clock, log: Log) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** Resolves when it hears; an ear that is lost is replaced until `close`. */
  async listen(url: string): Promise<void> {
    this.#ear = await this.#openEar(url);
    void this.#keepListening(url).catch(() => {});
  }

  on(topic: Topic, hear: Hear): void {
    this.#hearers.push({ topic, hear });
  }

  tell(topic: Topic, about: readonly string[] = []): void {
    for (const part of inParts(about)) {
      const word: Word = { from: this.#me, topic, about: part };
      this.#untold.push(JSON.stringify(word));
    }
    this.#telling ??= this.#tellAll();
  }

  async close(): Promise<void> {
    await this.#telling;
    this.#closing.abort();
    await this.#ear?.end();
  }

  /** Words that come while a statement is under way go with the next one. */
  async #tellAll(): Promise<void> {
    await Promise.resolve();
    while (this.#untold.length > 0) {
      const words = [...new Set(this.#untold.splice(0))];
      try {
        await this.#database.run(
          (sql) => sql`select pg_notify(${channel}, word) from unnest(${words}::text[]) as word`,
        );
      } catch (error) {
        this.#log.warn(`other processes were not told: ${messageOf(error)}`);
      }
    }
    this.#telling = undefined;
  }

  #hear(word: Word): void {
    if (word.from === this.#me) return;
    for (const { topic, hear } of this.#hearers) if (topic === word.topic) hear(word.about);
  }

  async #keepListening(url: string): Promise<never> {
    for (;;) {
      await this.#ear?.lost;
      await this.#ear?.end();
      await this.#clock.sleep(relistenAfterMs, this.#closing.signal);
      this.#ear = await this.#openEar(url).catch(() => undefined);
      if (this.#ear) for (const { hear } of this.#hearers) hear(undefined);
    }
  }

  /** A connection that does nothing but listen. The driver's own gives up where the server does not come back at once. */
  async #openEar(url: string): Promise<Ear> {
    const { promise: lost, resolve } = Promise.withResolvers<void>();
    const sql = postgres(url, {
      max: 1,
      max_lifetime: null,
      fetch_types: false,
      connect_timeout: 10,
      onnotify: (_channel: string, payload: string) => this.#hear(JSON.parse(payload)),
      onclose: () => resolve(),
    } as postgres.Options<Record<string, never>>); // The types do not know `onnotify`.
    const ear = { lost, end: () => sql.end({ timeout: 0 }) };
    const listening = sql`listen ${sql(channel)}`.then(() => "heard");
    // A statement on a connection that goes away may never settle.
    const outcome = await Promise.race([listening, lost.then(() => "the connection was lost")]).catch(messageOf);
    if (outcome === "heard" && !this.#closing.signal.aborted) return ear;
    await ear.end();
    throw new UserError(
      `database.url: PostgreSQL does not let this process listen for word from others: ${outcome}. Start again when it does.`,
    );
  }
}

interface Ear {
  /** Resolves when it hears no more. */
  readonly lost: Promise<void>;
  end(): Promise<void>;
}

/** At least one part; each small enough for one word. */
function inParts(about: readonly string[]): string[][] {
  const parts: string[][] = [[]];
  let length = 0;
  for (const one of about) {
    const bytes = Buffer.byteLength(JSON.stringify(one)) + 1;
    if (length + bytes > longestWord - 200) {
      parts.push([]);
      length = 0;
    }
    parts.at(-1)?.push(one);
    length += bytes;
  }
  return parts;
}
