import type { Json } from "../database/connection.ts";
import type { OperationRecord } from "../database/operation-record.ts";
import type { Queued } from "../database/outbox.ts";
import type { PendingRender } from "../database/renders.ts";
import type { Conversation } from "../database/routing.ts";
import type { Step, StepCommit } from "../database/steps.ts";
import type { Turn, Turns } from "../database/turns.ts";

/**
 * The steps of one turn, in order. What was finished before is handed back instead of being done again; what is
 * finished now is written with all that follows from it.
 */
export class Journal {
  readonly #turns: Turns;
  readonly #turn: Turn;
  readonly #written: Map<number, Step>;
  readonly #onQueued: (queued: Queued) => void;
  readonly #held: JournalEntry[] = [];
  #next = 0;

  /** `onQueued` is told what a step has to send, once it is written. */
  constructor(turns: Turns, turn: Turn, written: readonly Step[], onQueued: (queued: Queued) => void) {
    this.#turns = turns;
    this.#onQueued = onQueued;
    this.#turn = turn;
    this.#written = new Map(written.map((step) => [step.n, step]));
  }

  /** The next step is finished already: what came since was not shown in it. */
  get replays(): boolean {
    return this.#written.get(this.#next)?.state === "done";
  }

  /** How many steps there are so far. */
  get length(): number {
    return this.#next;
  }

  /** Passes over steps that are part of one that is finished. */
  skip(count: number): void {
    this.#next += count;
  }

  /** How many steps are part of step `n`, which is about to be finished: all behind it, also those that were not come to again. */
  partsOf(n: number): number {
    this.#next = Math.max(this.#next, ...[...this.#written.keys()].map((written) => written + 1));
    return this.#next - n - 1;
  }

  /** The next step, with its result where it is finished already. */
  take<Result>(name: string): TakenStep<Result> {
    const n = this.#next++;
    const step = this.#written.get(n);
    if (step && step.name !== name) {
      throw new Error(
        `turn ${this.#turn.id}: step ${n} was ${step.name} and is now ${name}; the turn cannot be continued`,
      );
    }
    return {
      n,
      name,
      state: step?.state,
      done: step?.state === "done" ? (step.result as Result) : undefined,
    };
  }

  begin({ n, name }: TakenStep<unknown>, operation: OperationRecord): Promise<void> {
    return this.#turns.begin(this.#turn, n, name, operation);
  }

  /** Keeps a finished step to be written with the next one, where nothing is done between the two. */
  hold(step: JournalEntry): void {
    this.#held.push(step);
  }

  /** Returns the agent's conversations that wait, where the step ends the turn. Throws `Fenced`. */
  commit(step: JournalEntry): Promise<Conversation[]> {
    return this.#write([...this.#held.splice(0), step]);
  }

  /** Writes what is held, where what it was to be written with does not come. Throws `Fenced`. */
  async flush(): Promise<void> {
    if (this.#held.length > 0) await this.#write(this.#held.splice(0));
  }

  async #write(entries: readonly JournalEntry[]): Promise<Conversation[]> {
    const steps = await Promise.all(entries.map(asWritten));
    const { queued, waiting } = await this.#turns.commit(this.#turn, ...steps);
    if (queued) this.#onQueued(queued);
    return waiting;
  }
}

/** A step whose turn it is. */
export interface TakenStep<Result> {
  readonly n: number;
  readonly name: string;
  /** What was written of it before: see `Step`. */
  readonly state: Step["state"] | undefined;
  readonly done: Result | undefined;
}

export type JournalEntry = Omit<StepCommit, "result" | "render"> & {
  readonly result: object;
  readonly render?: PendingRender;
};

const asWritten = async ({ render, ...step }: JournalEntry): Promise<StepCommit> => ({
  ...step,
  result: step.result as Json,
  render: await render?.take(),
});
