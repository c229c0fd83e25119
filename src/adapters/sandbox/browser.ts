import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { KeptProgram } from "./kept-program.ts";
import type { LineProgram } from "./line-program.ts";
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
/** Longest start of a browser. */
export const startMs = 30_000;
/** Longer than the page's own time limit by this, the browser itself hangs. */
export const graceMs = 5_000;
const idleMs = 60_000;
const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** The browser of one sandbox: it is started with the first page, and ended when it has had nothing to do for a minute. */
export class SandboxBrowser {
  readonly #kept: KeptProgram;

  /** @param onEnd called when it was ended */
  constructor(idle = idleMs, onEnd = (): void => {}) {
    const argv = [
      "/usr/bin/env",
      "node",
      "--input-type=module",
      "-e",
      program,
      `http://127.0.0.1:${proxyPort}`,
    ] as const;
    this.#kept = new KeptProgram({ argv, lineMost: imageMost, idleMs: idle, onEnd, startError: browserStartError });
  }

  /** True while it runs. */
  get isRunning(): boolean {
    return this.#kept.isRunning;
  }

  /** Takes a picture; one at a time. Throws a `UserError` that says what to do where there is none. */
  async shoot(sandbox: OpenSandbox, order: ShotOrder, signal: AbortSignal): Promise<Shot> {
    const answer = await this.#kept.ask(sandbox, {
      line: JSON.stringify({ ...order, heightMost }),
      withinMs: startMs + order.timeoutMs + graceMs,
      late: new UserError(tooLong(order)),
      signal,
    });
    if (answer === undefined)
      throw new UserError(
        "The browser has ended before the picture was there: the page may need more memory than the computer has.",
      );
    return readShot(answer, order);
  }

  end(): Promise<void> {
    return this.#kept.end();
  }
}

/** Names what people can do about a browser that does not start. */
export function browserStartError({ isOver, says }: LineProgram, error: unknown): unknown {
  if (/Cannot find module 'playwright-core'|executable doesn't exist/i.test(says)) return new UserError(missing);
  if (isOver)
    return new UserError(
      "The browser cannot be started: the computer may have no memory or processes left. End something there.",
    );
  return error;
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
  if (/Not attached to an active page|Execution context was destroyed|interrupted by another navigation/.test(error))
    return `${url} loads itself, or another page, again and again: there is no moment for a picture of it.`;
  if (code === "net::ERR_CONNECTION_REFUSED")
    return `${url}: nothing listens on this port of the computer. Start the server first, in the background, and look at its output.`;
  if (code === "net::ERR_PROXY_CONNECTION_FAILED")
    return `${url} cannot be reached: the computer has no network. Only its own servers can be seen, such as http://localhost:3000.`;
  if (code === "net::ERR_TUNNEL_CONNECTION_FAILED")
    return `${url} cannot be reached: its host is not allowed, or does not answer. The operator allows hosts in sandbox.network.`;
  if (code !== undefined) return `${url} cannot be loaded: the browser says ${code}.`;
  return `There is no picture of ${url}: ${error.split("\n")[0]}`;
}
