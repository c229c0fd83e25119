import { PgBoss } from "pg-boss";
import type { Log } from "../lib/log.ts";
import type { Database } from "./connection.ts";
import type { Conversation } from "./routing.ts";

type BossDatabase = NonNullable<ConstructorParameters<typeof PgBoss>[0]["db"]>;

const turns = "turn";
/** A job that runs this long has lost its process long ago: heartbeats tell much sooner. */
const expireInSeconds = 23 * 3600;

/** One conversation at a time. pg-boss wakes workers by id, and does not tell which are idle. */
interface Slot {
  worker: string;
  busy: boolean;
}

/**
 * Jobs that say "this conversation has work": at most one running and one waiting for each conversation. A job
 * carries nothing but the conversation: what there is to do stands in the tables.
 */
export class Queue {
  readonly #boss: PgBoss;
  readonly #slots: Slot[] = [];
  readonly #log: Log;

  constructor(database: Database, log: Log) {
    this.#log = log;
    // Jobs of a dead process are given to others by these passes; the embedded database has one process only.
    const seconds = "url" in database.location ? 5 : 60;
    const timing = {
      superviseIntervalSeconds: seconds,
      monitorIntervalSeconds: seconds,
      flowIntervalSeconds: 60,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
    };
    this.#boss =
      "url" in database.location
        ? new PgBoss({ ...timing, connectionString: database.location.url, max: 4 })
        : new PgBoss({ ...timing, db: embeddedAdapter(database), backend: "pglite" });
    this.#boss.on("error", (error) => log.warn({ err: error }, "job queue"));
  }

  async start(): Promise<void> {
    await this.#boss.start();
    await this.#boss.createQueue(turns, {
      policy: "stately",
      heartbeatSeconds: 10,
      retryLimit: 1000,
      retryDelay: 1,
      expireInSeconds,
      deleteAfterSeconds: 60,
    });
  }

  /**
   * Hands each conversation's jobs, one at a time, to `handler`; up to `concurrency` conversations side by side. A job
   * for which it does not return true comes again, to whoever is there.
   */
  async work(concurrency: number, handler: (conversation: Conversation) => Promise<boolean>): Promise<void> {
    for (let i = 0; i < concurrency; i++) {
      const slot: Slot = { worker: "", busy: false };
      // Polling only finds what a dead process left, or another was too busy for; the slots look one after the other.
      const options = { pollingIntervalSeconds: 20 + i };
      slot.worker = await this.#boss.work<Conversation>(turns, options, async ([job]) => {
        slot.busy = true;
        const done =
          !job ||
          (await handler(job.data).catch((error: unknown) => {
            this.#log.error({ err: error, ...job.data }, "a turn could not be begun and is tried again");
            return false;
          }));
        slot.busy = false;
        this.#boss.notifyWorker(slot.worker);
        if (!done) throw new Error("not done yet");
      });
      this.#slots.push(slot);
    }
  }

  /** Returns whether this process has room for it now. */
  async send(conversation: Conversation): Promise<boolean> {
    await this.#boss.send(turns, { ...conversation }, { singletonKey: `${conversation.agent}|${conversation.roomId}` });
    return this.look();
  }

  /**
   * Has an idle slot look for a job; false where there is none. Another one each time: a slot that is called twice
   * before it looks takes one job, and the other one would wait.
   */
  look(): boolean {
    const idle = this.#slots.find((slot) => !slot.busy);
    if (!idle) return false;
    this.#slots.push(...this.#slots.splice(this.#slots.indexOf(idle), 1));
    this.#boss.notifyWorker(idle.worker);
    return true;
  }

  /** Takes away the jobs of conversations whose process died, without waiting for its heartbeat to be missed. */
  async release(conversations: readonly Conversation[]): Promise<void> {
    for (const { agent, roomId } of conversations) {
      const jobs = await this.#boss.findJobs(turns, { key: `${agent}|${roomId}` });
      const active = jobs.filter((job) => job.state === "active").map((job) => job.id);
      if (active.length > 0) await this.#boss.deleteJob(turns, active);
    }
  }

  /** Forgets all jobs: only for a process that knows itself to be alone. The tables say what there is to do. */
  async clear(): Promise<void> {
    await this.#boss.deleteAllJobs(turns);
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: true, timeout: 10_000 });
  }
}

/** pg-boss on our one connection: texts of several statements must go by the simple protocol. */
const embeddedAdapter = ({ sql }: Database): BossDatabase => ({
  async executeSql(text, values) {
    const result = values?.length ? await sql.unsafe(text, values as never[]) : await sql.unsafe(text).simple();
    return { rows: Array.isArray(result[0]) ? result.flat() : [...result] };
  },
});
