/**
 * Protocol between us and the runner in a sandbox (`image/runner`), on any stream of bytes. Both sides send frames: a
 * head, which is a JSON object, and perhaps raw bytes behind it. Nothing that a command writes can look like a frame.
 *
 * Requests have a number, `req`, and are answered by `answer` or `refused` with that number:
 *
 * | op | asks for |
 * |---|---|
 * | `hello` version | first of all: the boot's id, and the commands that are kept |
 * | `list` | the commands that are kept |
 * | `disk` | bytes and files for which the workspace's file system has room |
 * | `start` id boot argv cwd env seconds stdin isWhole processes | starts a command, unless it is known; refused in another boot |
 * | `attach` id ch from | frames `out` (`at`, `stream`, bytes) from an offset on, then `end` |
 * | `write` id at + bytes, `finish` id | input; answered when there was room for it |
 * | `kill` id, `forget` id | ends all that is left of a command; frees its output |
 * | `dial` ch port, `listen` port | a connection to the sandbox's loopback; those to a port of it, by `open` (`ch`, `port`) |
 *
 * Frames of a channel have its number, `ch`: positive ones are ours to choose. Connections have `data`, `eof` and
 * `close`. Whoever sends on a channel may send `window` bytes, and as many more as `credit` gives it; a frame of output
 * costs `frameCost` besides its bytes.
 */
export const protocolVersion = 1;
/** Ours are smaller; a runner that sends more is disconnected. */
export const frameMost = 256 * 1024;
export const payloadMost = 32 * 1024;
export const frameCost = 64;

/** Head of a frame, as it came: fields are looked at where they are used. */
export type FrameHead = Readonly<Record<string, unknown>>;

export interface RunnerFrame {
  readonly head: FrameHead;
  readonly payload: Buffer;
}

/** The other side does not speak our protocol: the stream is useless. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

const sizes = 8;
const nothing = Buffer.alloc(0);

/** @throws ProtocolError where it is larger than a frame may be */
export function encodeFrame(head: FrameHead, payload: Buffer = nothing): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const rest = 4 + text.length + payload.length;
  if (rest > frameMost) throw new ProtocolError(`a frame of ${rest} bytes; it may have ${frameMost}`);
  const lengths = Buffer.alloc(sizes);
  lengths.writeUInt32BE(rest, 0);
  lengths.writeUInt32BE(text.length, 4);
  return Buffer.concat([lengths, text, payload]);
}

/** Takes bytes as they come, and gives whole frames. */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #length = 0;

  /** @throws ProtocolError for what is no frame, or too large for one */
  *feed(chunk: Buffer): Generator<RunnerFrame> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= sizes) {
      const start = this.#peek(sizes);
      const rest = start.readUInt32BE(0);
      const head = start.readUInt32BE(4);
      if (rest > frameMost || head + 4 > rest) throw new ProtocolError(`a frame of ${rest} bytes`);
      if (this.#length < 4 + rest) return;
      const frame = this.#take(4 + rest);
      yield { head: parseHead(frame.toString("utf8", sizes, sizes + head)), payload: frame.subarray(sizes + head) };
    }
  }

  /** The first bytes in one piece; joins as little as possible. */
  #peek(count: number): Buffer {
    const [first = nothing] = this.#chunks;
    if (first.length >= count) return first;
    this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? nothing;
  }

  #take(count: number): Buffer {
    const all = this.#peek(count);
    const rest = all.subarray(count);
    this.#chunks = rest.length > 0 ? [rest, ...this.#chunks.slice(1)] : this.#chunks.slice(1);
    this.#length -= count;
    return all.subarray(0, count);
  }
}

function parseHead(text: string): FrameHead {
  let head: unknown;
  try {
    head = JSON.parse(text);
  } catch {
    throw new ProtocolError("a frame whose head is no JSON");
  }
  if (typeof head !== "object" || head === null || Array.isArray(head))
    throw new ProtocolError("a frame whose head is no object");
  return head as FrameHead;
}
