import { afterIdling, callAfter } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { LineProgram } from "./line-program.ts";
import type { OpenSandbox } from "./run-program.ts";

interface KeptProgramOrder {
  readonly argv: readonly [string, ...string[]];
  /** Bytes of one line of its output. */
  readonly lineMost: number;
  /** It is ended when it has had nothing to do for so long. */
  readonly idleMs: number;
  /** Called when it was ended. */
  readonly onEnd?: () => void;
  /** Words for one that does not start, by what it has said. */
  readonly startError: (program: LineProgram, error: unknown) => unknown;
}

interface Question {
  readonly line: string;
  /** For the start, if it has to be started, and the answer. */
  readonly withinMs: number;
  /** Thrown where there is no answer in time. */
  readonly late: Error;
  readonly signal: AbortSignal;
}

/** A program that is started in a sandbox with the first question to it, and kept: it answers each line with a line. */
export class KeptProgram {
  readonly #order: KeptProgramOrder;
  #running: { readonly program: LineProgram; readonly boot: string } | undefined;
  #keep = (): void => {};

  constructor(order: KeptProgramOrder) {
    this.#order = order;
  }

  /** True while it runs. */
  get isRunning(): boolean {
    return this.#running !== undefined && !this.#running.program.isOver;
  }

  /** One question at a time. Resolves to undefined where the program has ended before it answered. */
  async ask(sandbox: OpenSandbox, { late, line, signal, withinMs }: Question): Promise<string | undefined> {
    this.#keep();
    const patience = new AbortController();
    const forget = callAfter(withinMs, () => patience.abort(late));
    const either = AbortSignal.any([signal, patience.signal]);
    let answer: string | undefined;
    try {
      const running = await this.#start(sandbox, either);
      await running.write(line);
      answer = await running.line(either).catch((error: unknown) => {
        if (running.isOver) return undefined;
        throw error;
      });
      return answer;
    } finally {
      forget();
      // One that has not answered would give this answer to the next who asks.
      if (answer === undefined) await this.end();
      else this.#keep = afterIdling(this.#order.idleMs, () => void this.end());
    }
  }

  async end(): Promise<void> {
    this.#keep();
    const running = this.#running;
    this.#running = undefined;
    this.#order.onEnd?.();
    await running?.program.end();
  }

  async #start(sandbox: OpenSandbox, signal: AbortSignal): Promise<LineProgram> {
    if (this.#running && (this.#running.program.isOver || this.#running.boot !== sandbox.boot))
      this.#running = undefined;
    if (this.#running) return this.#running.program;
    const { argv, lineMost, startError } = this.#order;
    const started = await LineProgram.start(sandbox, argv, { bytes: lineMost, waiting: 100 });
    this.#running = { program: started, boot: sandbox.boot };
    const first = await started.line(signal).catch((error: unknown) => {
      throw startError(started, error);
    });
    if (!first.startsWith('{"ready":'))
      throw startError(started, new UserError("The browser gave no answer that makes sense: try again."));
    return started;
  }
}
