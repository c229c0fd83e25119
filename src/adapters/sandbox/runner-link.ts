import type { Duplex } from "node:stream";
import { type Clock, callAfter } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { ChannelStream } from "./channel-stream.ts";
import {
  encodeFrame,
  FrameDecoder,
  type FrameHead,
  frameCost,
  ProtocolError,
  protocolVersion,
  type RunnerFrame,
} from "./protocol.ts";
import { type CommandEnd, type CommandOutput, readWords } from "./runner-words.ts";

/** Time in which the runner must answer: what it is asked takes milliseconds, also while commands flood. */
const answerMs = 30_000;
const beatMs = 10_000;

/** The stream to the runner has ended. Commands go on inside; another link finds them. */
export class LinkLost extends Error {
  override readonly name = "LinkLost";
}

/** Reasons for which the runner refuses; see `image/runner`. */
export type RunnerRefusal =
  | "other-boot"
  | "unknown"
  | "forgotten"
  | "full"
  | "processes"
  | "running"
  | "bad-request"
  | "unreachable"
  | "version"
  | "system";

/** The runner has refused, and has changed nothing. */
export class RunnerRefused extends Error {
  override readonly name = "RunnerRefused";
  readonly code: RunnerRefusal;

  constructor(code: RunnerRefusal, says: string) {
    super(says);
    this.code = code;
  }
}

/** Takes the frames of a channel. */
interface Receiver {
  receive(head: FrameHead, payload: Buffer): void;
  cut(error?: Error): void;
}

interface Pending {
  resolve(fields: FrameHead): void;
  reject(error: Error): void;
  readonly endWait: () => void;
}

type Greeting = ReturnType<typeof readWords<"hello">>;

/** One connection to a runner. */
export class RunnerLink {
  readonly #stream: Duplex;
  readonly #pending = new Map<number, Pending>();
  readonly #channels = new Map<number, Receiver>();
  readonly #ports = new Map<number, (connection: Duplex) => void>();
  readonly #lost = Promise.withResolvers<LinkLost>();
  readonly #beat = new AbortController();
  #error: LinkLost | undefined;
  #requests = 0;
  #numbers = 0;
  #greeting: Greeting | undefined;

  private constructor(stream: Duplex) {
    this.#stream = stream;
    const decoder = new FrameDecoder();
    stream.on("data", (chunk: Buffer) => {
      try {
        for (const frame of decoder.feed(chunk)) this.#onFrame(frame);
      } catch (error) {
        this.end(messageOf(error));
      }
    });
    stream.on("error", (error) => this.end(messageOf(error)));
    stream.on("close", () => this.end("the stream to the sandbox has ended"));
    stream.on("end", () => this.end("the stream to the sandbox has ended"));
  }

  /**
   * Greets the runner at the other end of the stream.
   * @throws LinkLost, RunnerRefused where it is of another version
   */
  static async open(stream: Duplex, clock: Clock): Promise<RunnerLink> {
    const link = new RunnerLink(stream);
    try {
      link.#greeting = readWords("hello", await link.ask("hello", { version: protocolVersion }));
    } catch (error) {
      link.end(messageOf(error));
      throw error instanceof ProtocolError ? new LinkLost(error.message) : error;
    }
    void link.#keepAlive(clock);
    return link;
  }

  /** Resolves when the stream has ended. */
  get lost(): Promise<LinkLost> {
    return this.#lost.promise;
  }

  get isLost(): boolean {
    return this.#error !== undefined;
  }

  /** Id of this run of the sandbox, and the commands that were kept when this link began. */
  get greeting(): Greeting {
    if (!this.#greeting) throw new Error("there is a greeting once the link is open");
    return this.#greeting;
  }

  /** @throws LinkLost, RunnerRefused */
  ask(op: string, fields: FrameHead, payload?: Buffer): Promise<FrameHead> {
    const req = ++this.#requests;
    const { promise, resolve, reject } = Promise.withResolvers<FrameHead>();
    const endWait = callAfter(answerMs, () => this.end(`the runner did not answer within ${answerMs / 1_000} s`));
    this.#pending.set(req, { resolve, reject, endWait });
    if (this.#error) this.#settle(req)?.reject(this.#error);
    else this.send({ op, req, ...fields }, payload);
    return promise;
  }

  /** Output of a command from an offset on; returns its end. Nothing is read ahead of what the caller takes. */
  async *attach(id: string, from: number): AsyncGenerator<CommandOutput, CommandEnd> {
    const ch = ++this.#numbers;
    const follower = new Follower((bytes) => this.send({ op: "credit", ch, bytes }));
    this.#channels.set(ch, follower);
    try {
      await this.ask("attach", { id, ch, from });
      return yield* follower.read();
    } finally {
      if (this.#channels.delete(ch)) this.send({ op: "close", ch });
    }
  }

  /**
   * Connects to a server of the sandbox's loopback.
   * @throws RunnerRefused `unreachable` where nothing answers on this port
   */
  async dial(port: number): Promise<Duplex> {
    const ch = ++this.#numbers;
    const channel = this.#open(ch);
    try {
      await this.ask("dial", { ch, port });
      return channel;
    } catch (error) {
      this.#channels.delete(ch);
      throw error;
    }
  }

  /** Listens on a port of the sandbox's loopback while this link lasts. */
  async listen(port: number, onConnection: (connection: Duplex) => void): Promise<void> {
    this.#ports.set(port, onConnection);
    await this.ask("listen", { port });
  }

  send(head: FrameHead, payload?: Buffer): void {
    if (!this.#error && this.#stream.writable) this.#stream.write(encodeFrame(head, payload));
  }

  release(ch: number): void {
    this.#channels.delete(ch);
  }

  end(reason = "the link was closed"): void {
    if (this.#error) return;
    this.#error = new LinkLost(reason);
    this.#beat.abort();
    this.#stream.destroy();
    for (const req of [...this.#pending.keys()]) this.#settle(req)?.reject(this.#error);
    for (const channel of [...this.#channels.values()]) channel.cut(this.#error);
    this.#channels.clear();
    this.#lost.resolve(this.#error);
  }

  #open(ch: number): ChannelStream {
    const channel = new ChannelStream(this, ch, this.greeting.window);
    // Tells errors to those who use it, and to nobody else.
    channel.on("error", () => {});
    this.#channels.set(ch, channel);
    return channel;
  }

  #settle(req: number): Pending | undefined {
    const pending = this.#pending.get(req);
    this.#pending.delete(req);
    pending?.endWait();
    return pending;
  }

  #onFrame({ head, payload }: RunnerFrame): void {
    if (head.op === "answer" && typeof head.req === "number") this.#settle(head.req)?.resolve(head);
    else if (head.op === "refused" && typeof head.req === "number") {
      const { code, says } = readWords("refused", head);
      this.#settle(head.req)?.reject(new RunnerRefused(code as RunnerRefusal, says));
    } else if (head.op === "open") {
      const { ch, port } = readWords("opened", head);
      const onConnection = this.#ports.get(port);
      if (onConnection && !this.#channels.has(ch)) onConnection(this.#open(ch));
      else this.send({ op: "close", ch });
    } else if (typeof head.ch === "number") this.#channels.get(head.ch)?.receive(head, payload);
    else throw new ProtocolError("a frame that belongs to nothing");
  }

  /** Notices a runner that has gone though its stream stands: `ask` ends the link when no answer comes. */
  async #keepAlive(clock: Clock): Promise<void> {
    try {
      while (!this.#error) {
        await clock.sleep(beatMs, this.#beat.signal);
        await this.ask("list", {});
      }
    } catch {
      // The link has ended.
    }
  }
}

/** Collects the output of one command until its end. */
class Follower implements Receiver {
  readonly #give: (bytes: number) => void;
  readonly #pieces: CommandOutput[] = [];
  #end: CommandEnd | undefined;
  #error: Error | undefined;
  #wake = (): void => {};

  constructor(give: (bytes: number) => void) {
    this.#give = give;
  }

  receive(head: FrameHead, data: Buffer): void {
    if (head.op === "out") {
      const { at, stream } = readWords("out", head);
      this.#pieces.push({ at, stream: stream === 1 ? "stdout" : "stderr", data });
    } else if (head.op === "end") this.#end = readWords("end", head);
    this.#wake();
  }

  cut(error?: Error): void {
    this.#error = error ?? new LinkLost("the runner has closed the channel");
    this.#wake();
  }

  async *read(): AsyncGenerator<CommandOutput, CommandEnd> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece) {
        yield piece;
        this.#give(piece.data.length + frameCost);
      } else if (this.#end) return this.#end;
      else if (this.#error) throw this.#error;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
