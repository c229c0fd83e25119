import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

/** A program that is spoken with by lines. */
export interface LineStream {
  /** The next line that it writes. Rejects where there comes none, or the signal is aborted. */
  line(signal: AbortSignal): Promise<string>;
  write(line: string): Promise<void>;
  /** Ends the program. */
  end(): Promise<void>;
}

/** Messages of the protocol as lines: how a server is spoken with that is a program. */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #stream: LineStream;
  readonly #read: (line: string) => JSONRPCMessage;
  readonly #stopped = new AbortController();
  #written: Promise<void> = Promise.resolve();

  /** @param read reads a message; throws where it is none */
  constructor(stream: LineStream, read: (line: string) => JSONRPCMessage) {
    this.#stream = stream;
    this.#read = read;
  }

  async start(): Promise<void> {
    void this.#follow();
  }

  /** Messages are written one after the other. */
  send(message: JSONRPCMessage): Promise<void> {
    const written = this.#written.then(() => this.#stream.write(JSON.stringify(message)));
    this.#written = written.catch(() => {});
    return written;
  }

  async close(): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort();
    await this.#stream.end().catch(() => {});
    this.onclose?.();
  }

  async #follow(): Promise<void> {
    try {
      for (;;) {
        const line = await this.#stream.line(this.#stopped.signal);
        try {
          this.onmessage?.(this.#read(line));
        } catch (error) {
          // Servers also write what is no message.
          this.onerror?.(error as Error);
        }
      }
    } catch {
      await this.close();
    }
  }
}
