import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { browserStartError, graceMs, startMs } from "./browser.ts";
import { KeptProgram } from "./kept-program.ts";
import { proxyPort } from "./proxy.ts";
import type { OpenSandbox } from "./run-program.ts";

/** A page that is to be loaded. */
export interface RenderOrder {
  /** http or https. */
  readonly url: string;
  /** With all that is to be seen of it, and a picture. */
  readonly needsPicture: boolean;
  /** For all of it. Default: 20 s. */
  readonly timeoutMs?: number;
}

const answerSchema = z.object({
  html: z.string(),
  isCut: z.boolean(),
  address: z.string().max(4_000),
  status: z.number().int().nullable(),
  image: z.base64().optional(),
});
const failedSchema = z.object({ error: z.string() });

/** A page as its scripts have written it. */
export interface RenderedPage {
  /** Address at the end. */
  readonly url: string;
  readonly html: string;
  /** The page went on. */
  readonly isCut: boolean;
  /** PNG of its beginning, where one was wanted. */
  readonly picture: Buffer | undefined;
}

const program = readFileSync(join(import.meta.dirname, "programs/renderer.mjs"), "utf8");
const limits = {
  ...{ width: 1_280, height: 720 },
  /** Characters of text with which a page is there, and the wait for them. */
  ...{ textLeast: 200, textMs: 5_000 },
  htmlMost: 2_000_000,
};
const pageMs = 20_000;
const answerMost = 40 << 20;
const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** The browser that loads pages, in a container that has nothing else. Its answers are believed in nothing. */
export class RenderBrowser {
  readonly #kept: KeptProgram;

  constructor(idleMs: number) {
    const proxy = `http://127.0.0.1:${proxyPort}`;
    const argv = ["/usr/bin/env", "node", "--input-type=module", "-e", program, proxy] as const;
    this.#kept = new KeptProgram({ argv, lineMost: answerMost, idleMs, startError: browserStartError });
  }

  /** Loads a page; one at a time. Throws a `UserError` that says why there is none. */
  async render(sandbox: OpenSandbox, order: RenderOrder, signal: AbortSignal): Promise<RenderedPage> {
    const { host } = new URL(order.url);
    const { timeoutMs = pageMs } = order;
    const answer = await this.#kept.ask(sandbox, {
      line: JSON.stringify({ ...order, ...limits, timeoutMs }),
      withinMs: startMs + timeoutMs + graceMs,
      late: new UserError(`${host} did not come to an end in the browser.`),
      signal,
    });
    if (answer === undefined)
      throw new UserError(`The browser has ended before ${host} was there: the page may need too much memory.`);
    return readAnswer(answer, host, timeoutMs);
  }

  end(): Promise<void> {
    return this.#kept.end();
  }
}

function readAnswer(answer: string, host: string, timeoutMs: number): RenderedPage {
  let said: unknown;
  try {
    said = JSON.parse(answer);
  } catch {
    said = undefined;
  }
  const read = answerSchema.safeParse(said);
  const picture = read.data?.image === undefined ? undefined : Buffer.from(read.data.image, "base64");
  const isPicture = picture === undefined || picture.subarray(0, signature.length).equals(signature);
  if (read.success && isPicture) {
    const { address, html, isCut, status } = read.data;
    if (status !== null && status >= 400) throw new UserError(`${host} answered the browser ${status}.`);
    const url = URL.parse(address);
    if (url?.protocol !== "http:" && url?.protocol !== "https:")
      throw new UserError(`${host} led the browser to something that is no page of the web.`);
    return { url: url.href, html, isCut, picture };
  }
  const failed = failedSchema.safeParse(said);
  if (!failed.success) throw new UserError("The browser gave no answer that makes sense: try again.");
  // Words of the page do not stand in errors: they could be anything.
  const [code] = /net::ERR_[A-Z_]+/.exec(failed.data.error) ?? [];
  if (/Timeout \d+ms exceeded/.test(failed.data.error))
    throw new UserError(`${host} was not loaded in the browser within ${timeoutMs / 1_000} s.`);
  throw new UserError(`${host} cannot be loaded in the browser${code === undefined ? "" : `: ${code}`}.`);
}
