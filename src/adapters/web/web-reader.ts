import { UserError } from "../../base/lib/errors.ts";
import { pdfBytesMost, readPdf } from "./pdf.ts";
import type { ReadText } from "./read-text.ts";
import { ReadingThread } from "./reading-thread.ts";
import type { Fetcher } from "./fetched.ts";

/** A page, as it was read. */
export interface WebPage extends ReadText {
  /** Address behind all redirects. */
  readonly url: string;
  /** The image that is there, as it came, in place of a text. */
  readonly picture?: Uint8Array | undefined;
}

export type PageForm = "markdown" | "html";

const textBytesMost = 5_000_000;
const textTypes =
  /^(?:text\/[\w.+-]+|application\/(?:xhtml\+xml|xml|json|javascript|yaml|x-yaml|x-ndjson|rss\+xml|atom\+xml|[\w.+-]+\+(?:json|xml)))(?:$|[\s;])/;
const pictureBytesMost = 10_000_000;
const isPicture = (contentType: string): boolean => /^image\/(?:png|jpeg|gif|webp)(?:$|[\s;])/.test(contentType);
const isPdf = (contentType: string): boolean => /^application\/(?:x-)?pdf(?:$|[\s;])/.test(contentType);

/** Opens addresses of the web as texts, and those of images as they are. */
export class WebReader {
  readonly #fetcher: Fetcher;
  readonly #thread = new ReadingThread();

  constructor(fetcher: Fetcher) {
    this.#fetcher = fetcher;
  }

  /** Rejects with a `UserError` that says why there is nothing to read, or with the signal's reason. */
  async read(address: string, form: PageForm, signal: AbortSignal): Promise<WebPage> {
    const fetched = await this.#fetcher.get(address, {
      signal,
      accept: "text/markdown, text/html;q=0.9, */*;q=0.5",
      most,
    });
    const { url, contentType, bytes, isTruncated } = fetched;
    if (isPdf(contentType) || (contentType === "" && hasPdfHead(bytes))) {
      if (isTruncated) throw new UserError(`The PDF at ${url} has more than ${pdfBytesMost / 1_000_000} MB.`);
      return { url, ...(await readPdf(bytes, signal)) };
    }
    if (isPicture(contentType)) {
      if (isTruncated) throw new UserError(`The image at ${url} has more than ${pictureBytesMost / 1_000_000} MB.`);
      return { url, contentType, text: "", title: undefined, isWhole: true, isCut: false, picture: bytes };
    }
    if (contentType === "" && bytes.includes(0)) throw new UserError(`${url} is no text, and does not say what it is.`);
    const text = await this.#thread.read({ bytes, contentType, url, form }, signal);
    return { url, ...text, isCut: text.isCut || isTruncated };
  }

  async close(): Promise<void> {
    await Promise.all([this.#thread.close(), this.#fetcher.close()]);
  }
}

/** Bytes that are taken of an answer of this type; undefined: it is not read. */
function most(contentType: string): number | undefined {
  if (isPdf(contentType)) return pdfBytesMost;
  if (isPicture(contentType)) return pictureBytesMost;
  return contentType === "" || textTypes.test(contentType) ? textBytesMost : undefined;
}

const hasPdfHead = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-";
