import type { Duplex } from "node:stream";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { payloadMost } from "./protocol.ts";
import { LinkLost, RunnerLink, RunnerRefused } from "./runner-link.ts";
import { type CommandEnd, type CommandOutput, type KeptCommand, readWords } from "./runner-words.ts";

export interface RunnerOptions {
  /** Opens a new stream to the runner of one sandbox. */
  readonly connect: () => Promise<Duplex>;
  readonly clock: Clock;
  /** Time in which a lost stream must be replaced; default 30 s. */
  readonly patienceMs?: number;
}

/** Asks for a command to be run. */
export interface CommandSpec {
  /** Name of this call, chosen and kept before it is sent: the same one never runs twice. */
  readonly id: string;
  /** Run of the sandbox in which it is to start; a later one refuses it. */
  readonly boot: string;
  readonly argv: readonly [string, ...string[]];
  /** Default: `/workspace`. */
  readonly cwd?: string;
  /** Beside those of the image. */
  readonly env?: Readonly<Record<string, string>>;
  /** Time limit; what it leaves in the background has none. */
  readonly seconds: number | null;
  /** True if `write` and `finish` follow. */
  readonly takesInput?: boolean;
  /** Processes without which it cannot begin; default: 1. */
  readonly processes?: number;
  /** True if none of its output may be dropped: it waits for whoever reads. Otherwise it never waits. */
  readonly isWhole?: boolean;
}

/** Place from which the output of a command is read on. */
export interface OutputPlace {
  readonly id: string;
  readonly boot: string;
  /** Default: the first byte that is kept. */
  readonly from?: number;
}

/** The sandbox was started anew: commands of the earlier boot are gone, and how they ended is not known. */
export const isOtherBoot = (error: unknown): boolean => error instanceof RunnerRefused && error.code === "other-boot";

/** The runner of one sandbox, by as many links as it takes: a lost one is replaced, and reading goes on where it was. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #ports = new Map<number, (connection: Duplex) => void>();
  #link: Promise<RunnerLink> | undefined;
  #isOpen = false;
  #isClosed = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** True while there is a link: the sandbox runs. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Id of the sandbox's present run. */
  async boot(): Promise<string> {
    return (await this.#open()).greeting.boot;
  }

  async list(): Promise<readonly KeptCommand[]> {
    return readWords("list", await this.#ask("list")).commands;
  }

  /**
   * Bytes and files for which the file system of the workspace has room. Null: it has no limit of files. Commands cannot
   * change what it says.
   */
  async disk(): Promise<{ readonly bytes: number; readonly files: number | null }> {
    return readWords("disk", await this.#ask("disk"));
  }

  /**
   * Starts a command, unless this boot knows its id. May be repeated.
   * @returns true if it was new
   * @throws RunnerRefused: `other-boot`, `forgotten`, `full`, `processes`, `bad-request`
   */
  async start({ id, boot, argv, cwd, env, seconds, takesInput, isWhole, processes = 1 }: CommandSpec) {
    const place = { cwd: cwd ?? "/workspace", env: env ?? {} };
    const flags = { stdin: takesInput ?? false, isWhole: isWhole ?? false };
    const fields = { id, boot, argv, ...place, seconds, ...flags, processes };
    return readWords("started", await this.#ask("start", fields)).isNew;
  }

  /** Starts a command, and reads its output; returns its end. See `start` and `follow`. */
  async *run(spec: CommandSpec): AsyncGenerator<CommandOutput, CommandEnd> {
    await this.start(spec);
    return yield* this.follow(spec);
  }

  /**
   * Output of a command from an offset on, over all links that it takes; returns its end. After the end it gives what
   * processes that were left behind have written since.
   * @throws RunnerRefused: `other-boot`, `unknown`, `forgotten`. LinkLost where no link can be had for long.
   */
  async *follow({ id, boot, from = 0 }: OutputPlace): AsyncGenerator<CommandOutput, CommandEnd> {
    for (let at = from; ; ) {
      const link = await this.#open();
      if (link.greeting.boot !== boot) throw new RunnerRefused("other-boot", "the sandbox has been started anew");
      try {
        const output = link.attach(id, at);
        for (;;) {
          const { value, done } = await output.next();
          if (done) return value;
          yield value;
          at = value.at + value.data.length;
        }
      } catch (error) {
        if (!(error instanceof LinkLost) || this.#isClosed) throw error;
      }
    }
  }

  /**
   * Writes input from this offset on; resolves when the command has room for more. May be repeated.
   * @returns the offset behind it
   */
  async write(id: string, at: number, data: Buffer): Promise<number> {
    let taken = at;
    for (let start = 0; start < data.length; start += payloadMost) {
      const piece = data.subarray(start, start + payloadMost);
      taken = readWords("taken", await this.#ask("write", { id, at: at + start }, piece)).taken;
    }
    return taken;
  }

  /** Ends the input of a command. */
  async finish(id: string): Promise<void> {
    await this.#ask("finish", { id });
  }

  /** Ends a command, and everything that it has left behind. */
  async kill(id: string): Promise<void> {
    await this.#ask("kill", { id });
  }

  /** Frees a command's output. Its id stays taken. */
  async forget(id: string): Promise<void> {
    await this.#ask("forget", { id });
  }

  /** Connects to a server that listens on a port of the sandbox's loopback. */
  async dial(port: number): Promise<Duplex> {
    return await (await this.#open()).dial(port);
  }

  /** Takes the connections to a port of the sandbox's loopback, from now on and over later links. */
  async listen(port: number, onConnection: (connection: Duplex) => void): Promise<void> {
    const link = await this.#open();
    this.#ports.set(port, onConnection);
    await link.listen(port, onConnection);
  }

  /** Commands go on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const link = await this.#link?.catch(() => undefined);
    link?.end();
  }

  /** All requests may be repeated, so one whose answer was lost is sent again. */
  async #ask(op: string, fields: Readonly<Record<string, unknown>> = {}, payload?: Buffer) {
    for (;;) {
      const link = await this.#open();
      try {
        return await link.ask(op, fields, payload);
      } catch (error) {
        if (!(error instanceof LinkLost) || this.#isClosed) throw error;
      }
    }
  }

  #open(): Promise<RunnerLink> {
    if (this.#isClosed) return Promise.reject(new LinkLost("the runner's client is closed"));
    this.#link ??= this.#connect();
    return this.#link;
  }

  async #connect(): Promise<RunnerLink> {
    const { connect, clock, patienceMs = 30_000 } = this.#options;
    const until = clock.monotonic() + patienceMs;
    try {
      for (let pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 2_000)) {
        try {
          const link = await RunnerLink.open(await connect(), clock);
          for (const [port, onConnection] of this.#ports) await listenAgain(link, port, onConnection);
          this.#isOpen = true;
          void link.lost.then(() => {
            this.#isOpen = false;
            this.#link = undefined;
          });
          return link;
        } catch (error) {
          if (error instanceof RunnerRefused || this.#isClosed || clock.monotonic() + pauseMs > until) throw error;
          if (!(error instanceof LinkLost)) throw error;
        }
        await clock.sleep(pauseMs);
      }
    } catch (error) {
      this.#link = undefined;
      throw error instanceof Error ? error : new LinkLost(messageOf(error));
    }
  }
}

/** A port that something in the sandbox has taken meanwhile is its own: all else works on. */
async function listenAgain(link: RunnerLink, port: number, onConnection: (connection: Duplex) => void): Promise<void> {
  try {
    await link.listen(port, onConnection);
  } catch (error) {
    if (!(error instanceof RunnerRefused)) throw error;
  }
}
