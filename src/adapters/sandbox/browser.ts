import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { afterIdling, callAfter } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { LineProgram } from "./line-program.ts";
import { proxyPort } from "./proxy.ts";
import type { OpenSandbox } from "./run-program.ts";

/** A picture that is wanted of a page. */
export interface ShotOrder {
  /** http or https. */
  readonly url: string;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** The whole page, however long; up to 10,000 pixels of it. */
  readonly isFullPage: boolean;
  /** Time to wait once it is loaded. */
  readonly waitMs: number;
  /** CSS selector of something that must be seen before. */
  readonly waitFor?: string | undefined;
  /** For all of it. */
  readonly timeoutMs: number;
}

const noticesSchema = z
  .array(z.object({ kind: z.enum(["error", "warning", "uncaught", "failed"]), text: z.string().max(1_000) }))
  .max(100);
const shotSchema = z.object({
  image: z.base64(),
  status: z.number().int().nullable(),
  address: z.string().max(2_000),
  title: z.string().max(300),
  notices: noticesSchema,
  more: z.number().int().min(0),
  isCut: z.boolean(),
});
const failedSchema = z.object({ error: z.string(), notices: noticesSchema });

export interface Shot extends Omit<z.output<typeof shotSchema>, "image"> {
  /** PNG. */
  readonly image: Buffer;
}

const program = readFileSync(join(import.meta.dirname, "programs/browser.mjs"), "utf8");
const heightMost = 10_000;
const imageMost = 24 << 20;
const startMs = 30_000;
/** Longer than the page's own time limit by this, the browser itself hangs. */
const graceMs = 5_000;
const idleMs = 60_000;
const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** The browser of one sandbox: it is started with the first page, and ended when it has had nothing to do for a minute. */
export class SandboxBrowser {
  readonly #idleMs: number;
  readonly #onEnd: () => void;
  #running: { readonly program: LineProgram; readonly boot: string } | undefined;
  #keep = (): void => {};

  /** @param onEnd called when it was ended */
  constructor(idle = idleMs, onEnd = (): void => {}) {
    this.#idleMs = idle;
    this.#onEnd = onEnd;
  }

  /** True while it runs. */
  get isRunning(): boolean {
    return this.#running !== undefined && !this.#running.program.isOver;
  }

  /** Takes a picture; one at a time. Throws a `UserError` that says what to do where there is none. */
  async shoot(sandbox: OpenSandbox, order: ShotOrder, signal: AbortSignal): Promise<Shot> {
    this.#keep();
    const late = new AbortController();
    const forget = callAfter(startMs + order.timeoutMs + graceMs, () => late.abort(new UserError(tooLong(order))));
    const either = AbortSignal.any([signal, late.signal]);
    let answer: string | undefined;
    try {
      const running = await this.#start(sandbox, either);
      await running.write(JSON.stringify({ ...order, heightMost }));
      answer = await running.line(either).catch((error: unknown) => {
        if (running.isOver)
          throw new UserError(
            "The browser has ended before the picture was there: the page may need more memory than the computer has.",
          );
        throw error;
      });
      return readShot(answer, order);
    } finally {
      forget();
      // One that has not answered would give this page to the next who asks.
      if (answer === undefined) await this.end();
      else this.#keep = afterIdling(this.#idleMs, () => void this.end());
    }
  }

  async end(): Promise<void> {
    this.#keep();
    const running = this.#running;
    this.#running = undefined;
    this.#onEnd();
    await running?.program.end();
  }

  async #start(sandbox: OpenSandbox, signal: AbortSignal): Promise<LineProgram> {
    if (this.#running && (this.#running.program.isOver || this.#running.boot !== sandbox.boot))
      this.#running = undefined;
    if (this.#running) return this.#running.program;
    const proxy = `http://127.0.0.1:${proxyPort}`;
    const argv = ["/usr/bin/env", "node", "--input-type=module", "-e", program, proxy] as const;
    const started = await LineProgram.start(sandbox, argv, { bytes: imageMost, waiting: 100 });
    this.#running = { program: started, boot: sandbox.boot };
    const first = await started.line(signal).catch((error: unknown) => {
      if (/Cannot find module 'playwright-core'|executable doesn't exist/i.test(started.says))
        throw new UserError(missing);
      if (started.isOver)
        throw new UserError(
          "The browser cannot be started: the computer may have no memory or processes left. End something there.",
        );
      throw error;
    });
    if (!first.startsWith('{"ready":')) throw new UserError("The browser gave no answer that makes sense: try again.");
    return started;
  }
}

const missing =
  "This computer has no browser: the operator makes an image with one (clevernet sandbox build, without --tools).";

const tooLong = ({ url, timeoutMs }: ShotOrder): string =>
  `${url} was not loaded within ${timeoutMs / 1_000} s: see with run_command curl if it answers.`;

function readShot(answer: string, order: ShotOrder): Shot {
  let read: unknown;
  try {
    read = JSON.parse(answer);
  } catch {
    read = undefined;
  }
  const shot = shotSchema.safeParse(read);
  if (shot.success) {
    const image = Buffer.from(shot.data.image, "base64");
    if (image.subarray(0, signature.length).equals(signature)) return { ...shot.data, image };
  }
  const failed = failedSchema.safeParse(read);
  if (!failed.success) throw new UserError("The browser gave no picture that makes sense: try again.");
  throw new UserError(reasonOf(failed.data.error, order));
}

/** Names what people can do about what the browser says. */
function reasonOf(error: string, order: ShotOrder): string {
  const { url, waitFor } = order;
  const [code] = /net::ERR_[A-Z_]+/.exec(error) ?? [];
  if (/while parsing css selector|not a valid selector|Unknown engine/.test(error))
    return `${waitFor} is no CSS selector.`;
  if (waitFor !== undefined && /^wait: Timeout/.test(error))
    return `${url} was loaded, but nothing that fits ${waitFor} could be seen in time.`;
  if (/Timeout \d+ms exceeded/.test(error)) return tooLong(order);
  if (code === "net::ERR_CONNECTION_REFUSED")
    return `${url}: nothing listens on this port of the computer. Start the server first, in the background, and look at its output.`;
  if (code === "net::ERR_PROXY_CONNECTION_FAILED")
    return `${url} cannot be reached: the computer has no network. Only its own servers can be seen, such as http://localhost:3000.`;
  if (code === "net::ERR_TUNNEL_CONNECTION_FAILED")
    return `${url} cannot be reached: its host is not allowed, or does not answer. The operator allows hosts in sandbox.network.`;
  if (code !== undefined) return `${url} cannot be loaded: the browser says ${code}.`;
  return `There is no picture of ${url}: ${error.split("\n")[0]}`;
}
