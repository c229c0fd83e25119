import { UserError } from "../../base/lib/errors.ts";
import { pdfBytesMost, readPdf } from "./pdf.ts";
import type { ReadText } from "./read-text.ts";
import { ReadingThread } from "./reading-thread.ts";
import type { WayOut } from "./way-out.ts";

/** A page, as it was read. */
export interface WebPage extends ReadText {
  /** Address behind all redirects. */
  readonly url: string;
}

export type PageForm = "markdown" | "html";

const textBytesMost = 5_000_000;
const textTypes =
  /^(?:text\/[\w.+-]+|application\/(?:xhtml\+xml|xml|json|javascript|yaml|x-yaml|x-ndjson|rss\+xml|atom\+xml|[\w.+-]+\+(?:json|xml)))(?:$|[\s;])/;
const isPdf = (contentType: string): boolean => /^application\/(?:x-)?pdf(?:$|[\s;])/.test(contentType);

/** Opens addresses of the web as texts. */
export class WebReader {
  readonly #wayOut: WayOut;
  readonly #thread = new ReadingThread();

  constructor(wayOut: WayOut) {
    this.#wayOut = wayOut;
  }

  /** Rejects with a `UserError` that says why there is nothing to read, or with the signal's reason. */
  async read(address: string, form: PageForm, signal: AbortSignal): Promise<WebPage> {
    const fetched = await this.#wayOut.get(address, {
      signal,
      accept: "text/markdown, text/html;q=0.9, */*;q=0.5",
      most: (type) => (isPdf(type) ? pdfBytesMost : type === "" || textTypes.test(type) ? textBytesMost : undefined),
    });
    const { url, contentType, bytes, isTruncated } = fetched;
    if (isPdf(contentType) || (contentType === "" && hasPdfHead(bytes))) {
      if (isTruncated) throw new UserError(`The PDF at ${url} has more than ${pdfBytesMost / 1_000_000} MB.`);
      return { url, ...(await readPdf(bytes, signal)) };
    }
    if (contentType === "" && bytes.includes(0)) throw new UserError(`${url} is no text, and does not say what it is.`);
    const text = await this.#thread.read({ bytes, contentType, url, form }, signal);
    return { url, ...text, isCut: text.isCut || isTruncated };
  }

  async close(): Promise<void> {
    await Promise.all([this.#thread.close(), this.#wayOut.close()]);
  }
}

const hasPdfHead = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-";
