import type { Json } from "../../adapters/database/connection.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { RetryError } from "../../base/lib/errors.ts";
import { type Conversation, type EventId, HOME, type RoomId } from "../../base/lib/ids.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import { memoryOfEntry } from "../../domain/memory/observe.ts";
import { findLeftOpen } from "../../domain/speech/left-open.ts";
import type { Memory } from "../../domain/tables/interactions.ts";
import type { OperationRecord } from "../../domain/tables/operation-record.ts";
import type { OutboxDraft, Queued } from "../../domain/tables/outbox.ts";
import type { PendingRender } from "../../domain/tables/renders.ts";
import { markAnswers } from "../../domain/tables/restores.ts";
import type { LeftOpen } from "../../domain/tables/silences.ts";
import { RequestChanged, type Step, type StepCommit, Unheard } from "../../domain/tables/steps.ts";
import type { Turn, Turns } from "../../domain/tables/turns.ts";
import { SomebodyCame } from "./interruption.ts";

/** An unwell database is brought again what it did not take, after this time. */
const againAfterMs = 1_000;

/**
 * The steps of one turn, in order. What was finished before is handed back instead of being done again; what is
 * finished now is written with all that follows from it.
 */
export class Journal {
  readonly #turns: Turns;
  readonly #turn: Turn;
  readonly #written: Map<number, Step>;
  readonly #onQueued: (queued: Queued) => void;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  /** Of the names by which the agent calls tools. */
  readonly #suffix: string;
  readonly #followUpAfterSeconds: number | null;
  readonly #held: JournalEntry[] = [];
  /** Resolves once all before a step are written, where several are worked on at once. */
  readonly #reached = new Map<number, Promise<void>>();
  #next = 0;
  /** Last event that the turn was woken for. */
  #answersUntil: EventId | undefined;

  constructor(
    turns: Turns,
    turn: Turn,
    written: readonly Step[],
    { onQueued, clock, followUpAfterSeconds, signal, suffix }: JournalServices,
  ) {
    this.#turns = turns;
    this.#onQueued = onQueued;
    this.#clock = clock;
    this.#signal = signal;
    this.#suffix = suffix;
    this.#followUpAfterSeconds = followUpAfterSeconds;
    this.#turn = turn;
    this.#written = new Map(written.map((step) => [step.n, step]));
  }

  /** The next step is finished already: what came since was not shown in it. */
  get replays(): boolean {
    return this.#written.get(this.#next)?.state === "done";
  }

  /** Begins behind the last finished step of this name, where there is one. Returns what was kept of it. */
  beginBehind<Result>(name: string): Result | undefined {
    const last = [...this.#written.values()].findLast((step) => step.name === name && step.state === "done");
    if (!last) return undefined;
    this.#next = last.n + 1;
    return last.result as Result;
  }

  /** Number of steps so far. */
  get length(): number {
    return this.#next;
  }

  /** Passes over steps that are part of one that is finished. */
  skip(count: number): void {
    this.#next += count;
  }

  /** Counts the steps inside step `n`, which is about to be finished: all behind it, repeated after a restart or not. */
  partsOf(n: number): number {
    this.#next = Math.max(this.#next, ...[...this.#written.keys()].map((written) => written + 1));
    return this.#next - n - 1;
  }

  /**
   * The next step, with its result where it is finished already. Nothing is written of it before `reached`, so that the
   * journal has no gaps.
   */
  take<Result>(name: string, reached?: Promise<void>): TakenStep<Result> {
    const n = this.#next++;
    if (reached) this.#reached.set(n, reached);
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

  async begin({ n, name }: TakenStep<unknown>, operation: OperationRecord): Promise<void> {
    await this.#reached.get(n);
    return this.#turns.begin(this.#turn, n, name, operation);
  }

  /** Declares that all that the steps say from now on answers the turn's room up to this event. */
  answer(until: EventId | undefined): void {
    this.#answersUntil = until ?? this.#answersUntil;
  }

  /** Keeps a finished step to be written with the next one, where nothing is done between the two. */
  hold(step: JournalEntry): void {
    this.#held.push(step);
  }

  /**
   * Returns the agent's conversations that wait, where the step ends the turn. Throws `Fenced`; and `SomebodyCame` once
   * it has written, in place of what would be heard by somebody who may not, that it was not said.
   */
  async commit(step: JournalEntry): Promise<Conversation[]> {
    await this.#reached.get(step.n);
    return this.#write([...this.#held.splice(0), step]);
  }

  /** Writes what is held, where what it was to be written with does not come. Throws `Fenced`. */
  async flush(): Promise<void> {
    if (this.#held.length > 0) await this.#write(this.#held.splice(0));
  }

  async #write(entries: readonly JournalEntry[]): Promise<Conversation[]> {
    try {
      return await this.#commit(entries);
    } catch (error) {
      // Steps that are done already are written, and those who have asked are told.
      if (error instanceof RequestChanged && entries.length > 1) await this.#commit(entries.slice(0, -1));
      if (!(error instanceof Unheard)) throw error;
      await this.#commit(entries, unsaid);
      throw new SomebodyCame(error.message);
    }
  }

  async #commit(entries: readonly JournalEntry[], writtenAs = asWritten): Promise<Conversation[]> {
    const steps = async () =>
      (await Promise.all(entries.map(writtenAs))).map((step) => ({
        ...step,
        ...(step.subAgent === undefined && { remembered: memoriesOf(step, this.#suffix) }),
        leftOpen: leftOpenBy(step, this.#turn.roomId, this.#followUpAfterSeconds),
        ...(step.outbox && { outbox: markAnswers(step.outbox, this.#turn, this.#answersUntil) }),
      }));
    const write = async () => this.#turns.commit(this.#turn, ...(await steps()));
    const { queued, waiting } = await this.#insist(write);
    if (queued) this.#onQueued(queued);
    return waiting;
  }

  /**
   * A finished step was paid for, and may have changed the world: it is kept here for as long as the database is
   * unwell.
   */
  async #insist<Result>(write: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (!(error instanceof RetryError) || this.#signal.aborted) throw error;
        await this.#clock.sleep(againAfterMs, this.#signal).catch(() => {});
      }
    }
  }
}

interface JournalServices {
  /** Told what a step has to send, once it is written. */
  readonly onQueued: (queued: Queued) => void;
  readonly clock: Clock;
  /** Aborted when nobody waits for what is written any more. */
  readonly signal: AbortSignal;
  /** Of the names by which the agent calls tools. */
  readonly suffix: string;
  /** See the field of `agent.json`. */
  readonly followUpAfterSeconds: number | null;
}

/** Reads what a step leaves open in the room; undefined at home, and where the agent follows nothing up. */
function leftOpenBy({ outbox = [] }: StepCommit, roomId: RoomId, waitSeconds: number | null): LeftOpen | undefined {
  if (waitSeconds === null || roomId === HOME) return undefined;
  const texts = outbox.flatMap((draft) => (draft.kind === "message" && draft.roomId === roomId ? saidIn(draft) : []));
  const found = texts.map(findLeftOpen);
  return {
    waitSeconds,
    isQuestion: found.some(({ isQuestion }) => isQuestion),
    isPromise: found.some(({ isPromise }) => isPromise),
  };
}

/** Text of a message; nothing of a notice, such as a card. */
const saidIn = ({ content }: OutboxDraft): string[] => {
  const { msgtype, body } = (content ?? {}) as { readonly msgtype?: unknown; readonly body?: unknown };
  return msgtype === "m.text" && typeof body === "string" ? [body] : [];
};

/** Reads the memories of a step's entries, by their index. */
const memoriesOf = ({ name, ephemeris = [] }: StepCommit, suffix: string): (Memory | undefined)[] =>
  ephemeris.map((entry) => memoryOfEntry(fromStored(entry), suffix, name));

/** A step whose turn it is. */
export interface TakenStep<Result> {
  readonly n: number;
  readonly name: string;
  /** State that was written of it before: see `Step`. */
  readonly state: Step["state"] | undefined;
  readonly done: Result | undefined;
}

export type JournalEntry = Omit<StepCommit, "result" | "render"> & {
  readonly result: object;
  readonly render?: PendingRender;
  /** Step that is written instead where its outbox may not be heard. */
  readonly unsaid?: Partial<Omit<StepCommit, "result">> & { readonly result: object };
};

const asWritten = async ({ render, unsaid: _, ...step }: JournalEntry): Promise<StepCommit> => ({
  ...step,
  result: step.result as Json,
  render: await render?.take(),
});

/** The step as it is written where nothing of it may be said: the turn goes on. */
const unsaid = async (entry: JournalEntry): Promise<StepCommit> => {
  const step = await asWritten(entry);
  if (!step.outbox?.length) return { ...step, ends: false };
  const instead = entry.unsaid ?? {};
  return { ...step, ...(instead as Partial<StepCommit>), outbox: [], ends: false };
};
