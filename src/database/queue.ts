import { type IDatabase, PgBoss } from "pg-boss";
import type { Log } from "../lib/log.ts";
import type { Database } from "./connection.ts";
import type { Conversation } from "./routing.ts";

const turns = "turn";
/** A job that runs this long has lost its process long ago: heartbeats tell much sooner. */
const expireInSeconds = 23 * 3600;

/**
 * Jobs that say "this conversation has work": at most one running and one waiting for each conversation. A job
 * carries nothing but the conversation: what there is to do stands in the tables.
 */
export class Queue {
  readonly #boss: PgBoss;
  #worker: string | undefined;

  constructor(database: Database, log: Log) {
    const timing = {
      superviseIntervalSeconds: 5,
      monitorIntervalSeconds: 5,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
    };
    this.#boss =
      "url" in database.location
        ? new PgBoss({ ...timing, connectionString: database.location.url, max: 4, useListenNotify: true })
        : new PgBoss({ ...timing, db: embeddedAdapter(database), backend: "pglite" });
    this.#boss.on("error", (error) => log.warn({ err: error }, "job queue"));
  }

  async start(): Promise<void> {
    await this.#boss.start();
    await this.#boss.createQueue(turns, {
      policy: "stately",
      notify: true,
      heartbeatSeconds: 10,
      retryLimit: 1000,
      retryDelay: 0,
      expireInSeconds,
      deleteAfterSeconds: 60,
    });
  }

  /** Hands each conversation's jobs, one at a time, to `handler`; up to `concurrency` conversations side by side. */
  async work(concurrency: number, handler: (conversation: Conversation) => Promise<void>): Promise<void> {
    this.#worker = await this.#boss.work<Conversation>(
      turns,
      { localConcurrency: concurrency, pollingIntervalSeconds: 2 },
      async ([job]) => {
        try {
          if (job) await handler(job.data);
        } finally {
          this.#nudge();
        }
      },
    );
  }

  async send(conversation: Conversation): Promise<void> {
    await this.#boss.send(turns, { ...conversation }, { singletonKey: `${conversation.agent}|${conversation.roomId}` });
    this.#nudge();
  }

  /** Gives back the jobs of conversations whose process died, without waiting for its heartbeat to be missed. */
  async release(conversations: readonly Conversation[]): Promise<void> {
    for (const { agent, roomId } of conversations) {
      const jobs = await this.#boss.findJobs(turns, { key: `${agent}|${roomId}` });
      const active = jobs.filter((job) => job.state === "active").map((job) => job.id);
      if (active.length > 0) await this.#boss.fail(turns, active);
    }
  }

  /** Forgets all jobs: only for a process that knows itself to be alone. The tables say what there is to do. */
  async clear(): Promise<void> {
    await this.#boss.deleteAllJobs(turns);
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: true, timeout: 10_000 });
  }

  #nudge(): void {
    if (this.#worker) this.#boss.notifyWorker(this.#worker);
  }
}

/** pg-boss on our one connection: texts of several statements must go by the simple protocol. */
const embeddedAdapter = ({ sql }: Database): IDatabase => ({
  async executeSql(text, values) {
    const result = values?.length ? await sql.unsafe(text, values as never[]) : await sql.unsafe(text).simple();
    return { rows: Array.isArray(result[0]) ? result.flat() : [...result] };
  },
});
