import { UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import { clear, type OpenSandbox, startError } from "./run-program.ts";

/** Bytes of one line of a program's output, and lines that nobody has read yet. */
interface LineLimits {
  readonly bytes: number;
  readonly waiting: number;
}

/** A program that stays in a sandbox, and answers each line of its input with a line. */
export class LineProgram {
  readonly #sandbox: OpenSandbox;
  readonly #id = `own-${secret(8)}`;
  readonly #lines: string[] = [];
  readonly #over = Promise.withResolvers<void>();
  readonly #most: LineLimits;
  #written = 0;
  #isOver = false;
  #says = "";
  #wake = (): void => {};

  private constructor(sandbox: OpenSandbox, most: LineLimits) {
    this.#sandbox = sandbox;
    this.#most = most;
  }

  /** One that writes more than the limits is ended. */
  static async start(
    sandbox: OpenSandbox,
    argv: readonly [string, ...string[]],
    most: LineLimits,
  ): Promise<LineProgram> {
    const program = new LineProgram(sandbox, most);
    const { runner, boot } = sandbox;
    try {
      await runner.start({ id: program.#id, boot, argv, seconds: null, takesInput: true, isWhole: true });
    } catch (error) {
      throw startError(error);
    }
    void program.#read();
    return program;
  }

  /** True once it has ended, or its sandbox has. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The last that it wrote on stderr. */
  get says(): string {
    return this.#says;
  }

  async write(line: string): Promise<void> {
    const data = Buffer.from(`${line}\n`);
    const { runner } = this.#sandbox;
    this.#written = await runner.write(this.#id, this.#written, data);
  }

  /** The next line of its output. Throws a `UserError` where there comes none, or the signal is aborted. */
  async line(signal: AbortSignal): Promise<string> {
    const stop = (): void => this.#wake();
    signal.addEventListener("abort", stop);
    try {
      for (;;) {
        const line = this.#lines.shift();
        if (line !== undefined) return line;
        signal.throwIfAborted();
        if (this.#isOver) throw new UserError("the program has ended");
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ends it with all that it has started; resolves when that is done. */
  async end(): Promise<void> {
    await clear(this.#sandbox.runner, this.#id);
    await this.#over.promise;
  }

  async #read(): Promise<void> {
    const { runner, boot } = this.#sandbox;
    let pieces: Buffer[] = [];
    let size = 0;
    try {
      const output = runner.follow({ id: this.#id, boot });
      for (;;) {
        const { value, done } = await output.next();
        if (done) break;
        if (value.stream === "stderr") {
          this.#says = `${this.#says}${value.data}`.slice(-2_000);
          continue;
        }
        let rest = value.data;
        for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
          this.#lines.push(Buffer.concat([...pieces, rest.subarray(0, end)]).toString());
          [pieces, size, rest] = [[], 0, rest.subarray(end + 1)];
          this.#wake();
        }
        pieces.push(rest);
        size += rest.length;
        if (size > this.#most.bytes || this.#lines.length > this.#most.waiting) break;
      }
    } catch {
      // The sandbox is gone, and the program with it.
    }
    this.#isOver = true;
    this.#over.resolve();
    this.#wake();
    await clear(runner, this.#id);
  }
}
