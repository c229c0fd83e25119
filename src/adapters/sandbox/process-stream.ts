import { Duplex, type Readable, type Writable } from "node:stream";

export interface StreamedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process has ended: with the reason if it failed. Never rejects. */
  readonly ended: Promise<string | undefined>;
  kill(): void;
}

/** Standard input and output of a process as one stream. It ends as the process does, with an error if that failed. */
export class ProcessStream extends Duplex {
  readonly #process: StreamedProcess;

  constructor(process: StreamedProcess) {
    super({ allowHalfOpen: true });
    this.#process = process;
    const { stdin, stdout, ended } = process;
    stdout.on("data", (data: Buffer) => {
      if (!this.push(data)) stdout.pause();
    });
    // The process says what is wrong when it ends.
    stdout.on("error", () => {});
    stdin.on("error", () => {});
    void ended.then((failure) => {
      if (this.destroyed) return;
      if (failure !== undefined) this.destroy(new Error(failure));
      else if (stdout.readableEnded) this.push(null);
      else stdout.once("end", () => this.push(null));
    });
  }

  override _read(): void {
    this.#process.stdout.resume();
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const { stdin } = this.#process;
    if (stdin.destroyed || !stdin.writable) done();
    else stdin.write(data, () => done());
  }

  override _final(done: () => void): void {
    this.#process.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#process.kill();
    done(error);
  }
}
