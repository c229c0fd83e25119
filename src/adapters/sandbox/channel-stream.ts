import { Duplex } from "node:stream";
import { type FrameHead, payloadMost } from "./protocol.ts";

export interface ChannelSender {
  send(head: FrameHead, payload?: Buffer): void;
  /** The channel's number is free. */
  release(ch: number): void;
}

/** One TCP connection in a sandbox, as a stream. Each side sends only as much as the other has room for. */
export class ChannelStream extends Duplex {
  readonly #sender: ChannelSender;
  readonly #ch: number;
  readonly #incoming: Buffer[] = [];
  #credit: number;
  #waiting: { readonly data: Buffer; readonly done: () => void } | undefined;
  #isWanted = false;
  #isOver = false;
  #hasPushedEnd = false;

  constructor(sender: ChannelSender, ch: number, window: number) {
    super({ allowHalfOpen: true });
    this.#sender = sender;
    this.#ch = ch;
    this.#credit = window;
  }

  /** A frame of this channel has come. */
  receive(head: FrameHead, payload: Buffer): void {
    if (head.op === "data") {
      this.#incoming.push(payload);
      this.#deliver();
    } else if (head.op === "eof") {
      this.#isOver = true;
      this.#deliver();
    } else if (head.op === "credit" && typeof head.bytes === "number") {
      this.#credit += head.bytes;
      this.#flush();
    } else if (head.op === "close") this.cut();
  }

  /** The other side has gone. */
  cut(error?: Error): void {
    this.#sender.release(this.#ch);
    if (error) this.destroy(error);
    else {
      this.#isOver = true;
      this.#deliver();
      // Leaves what has come to the reader.
      if (this.#waiting || !this.writableEnded) this.end();
      this.#waiting?.done();
      this.#waiting = undefined;
    }
  }

  override _read(): void {
    this.#isWanted = true;
    this.#deliver();
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#waiting = { data, done };
    this.#flush();
  }

  override _final(done: () => void): void {
    this.#sender.send({ op: "eof", ch: this.#ch });
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#sender.send({ op: "close", ch: this.#ch });
    this.#sender.release(this.#ch);
    this.#waiting?.done();
    this.#waiting = undefined;
    done(error);
  }

  #deliver(): void {
    while (this.#isWanted) {
      const data = this.#incoming.shift();
      if (!data) break;
      this.#isWanted = this.push(data);
      this.#sender.send({ op: "credit", ch: this.#ch, bytes: data.length });
    }
    if (!this.#isOver || this.#incoming.length > 0 || this.#hasPushedEnd) return;
    this.#hasPushedEnd = true;
    this.push(null);
  }

  #flush(): void {
    while (this.#waiting && this.#credit > 0) {
      const { data, done } = this.#waiting;
      const piece = data.subarray(0, Math.min(payloadMost, this.#credit));
      this.#credit -= piece.length;
      this.#sender.send({ op: "data", ch: this.#ch }, piece);
      const rest = data.subarray(piece.length);
      this.#waiting = rest.length > 0 ? { data: rest, done } : undefined;
      if (!this.#waiting) done();
    }
  }
}
