import { PgBoss } from "pg-boss";
import type { Log } from "../lib/log.ts";
import { keyOf, type Queue } from "./queue.ts";
import type { Conversation } from "./routing.ts";

const turns = "turn";
/** A job that runs this long has lost its process long ago: heartbeats tell much sooner. */
const expireInSeconds = 23 * 3600;

/** One conversation at a time. pg-boss wakes workers by id, and does not tell which are idle. */
interface Slot {
  worker: string;
  busy: boolean;
}

/** Jobs on a PostgreSQL server, for all processes that work there. */
export class SharedQueue implements Queue {
  readonly #boss: PgBoss;
  readonly #slots: Slot[] = [];
  readonly #log: Log;

  constructor(url: string, log: Log) {
    this.#log = log;
    this.#boss = new PgBoss({
      connectionString: url,
      max: 4,
      // Jobs of a dead process are given to others by these passes.
      superviseIntervalSeconds: 5,
      monitorIntervalSeconds: 5,
      flowIntervalSeconds: 60,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
    });
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

  async send(conversation: Conversation): Promise<boolean> {
    await this.#boss.send(turns, { ...conversation }, { singletonKey: keyOf(conversation) });
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

  async release(conversations: readonly Conversation[]): Promise<void> {
    for (const conversation of conversations) {
      const jobs = await this.#boss.findJobs(turns, { key: keyOf(conversation) });
      const active = jobs.filter((job) => job.state === "active").map((job) => job.id);
      if (active.length > 0) await this.#boss.deleteJob(turns, active);
    }
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: true, timeout: 10_000 });
  }
}
