import { UserError } from "../../base/lib/errors.ts";
import type { Fetcher } from "./fetched.ts";
import { pdfBytesMost, readPdf } from "./pdf.ts";
import type { ReadText } from "./read-text.ts";
import { ReadingThread } from "./reading-thread.ts";

/** A page, as it was read. */
export interface WebPage extends ReadText {
  /** Address behind all redirects. */
  readonly url: string;
  /** The image that is there, as it came, in place of a text. */
  readonly picture?: Uint8Array | undefined;
  /** The page as a browser shows it, beside its text. */
  readonly screenshot?: Uint8Array | undefined;
  /** A browser has loaded it. */
  readonly isRendered?: boolean;
  /** Why the page is shown without its scripts, although it is empty so. */
  readonly problem?: string | undefined;
}

export type PageForm = "markdown" | "html";

/** A browser that loads pages with their scripts. */
export interface PageBrowser {
  /** Rejects with a `UserError` that says why there is no page, or with the signal's reason. */
  render(
    order: { readonly url: string; readonly needsPicture: boolean },
    signal: AbortSignal,
  ): Promise<{
    /** Address at the end. */
    readonly url: string;
    readonly html: string;
    readonly isCut: boolean;
    /** PNG, where one was wanted. */
    readonly picture: Uint8Array | undefined;
  }>;
}

export interface ReadOptions {
  readonly form: PageForm;
  /** A picture of the page is wanted, as a browser shows it. */
  readonly needsPicture?: boolean | undefined;
}

const textBytesMost = 5_000_000;
const textTypes =
  /^(?:text\/[\w.+-]+|application\/(?:xhtml\+xml|xml|json|javascript|yaml|x-yaml|x-ndjson|rss\+xml|atom\+xml|[\w.+-]+\+(?:json|xml)))(?:$|[\s;])/;
const pictureBytesMost = 10_000_000;
const isPicture = (contentType: string): boolean => /^image\/(?:png|jpeg|gif|webp)(?:$|[\s;])/.test(contentType);
const isPdf = (contentType: string): boolean => /^application\/(?:x-)?pdf(?:$|[\s;])/.test(contentType);

/** Opens addresses of the web as texts, and those of images as they are. */
export class WebReader {
  readonly #fetcher: Fetcher;
  readonly #browser: PageBrowser | undefined;
  readonly #thread = new ReadingThread();

  /** @param browser undefined: pages are read without their scripts */
  constructor(fetcher: Fetcher, browser?: PageBrowser) {
    this.#fetcher = fetcher;
    this.#browser = browser;
  }

  /** Rejects with a `UserError` that says why there is nothing to read, or with the signal's reason. */
  async read(address: string, { form, needsPicture = false }: ReadOptions, signal: AbortSignal): Promise<WebPage> {
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
    const page = { url, ...text, isCut: text.isCut || isTruncated };
    if (!isHtml(contentType)) return page;
    if (needsPicture) return this.#render(url, { form, needsPicture }, signal);
    if (text.text.length >= textLeast || !/<script[\s>]/i.test(Buffer.from(bytes).toString("latin1"))) return page;
    try {
      return await this.#render(url, { form }, signal);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { ...page, problem: error.message };
    }
  }

  /** Reads a page as its scripts have written it. */
  async #render(address: string, { form, needsPicture = false }: ReadOptions, signal: AbortSignal): Promise<WebPage> {
    if (!this.#browser) throw new UserError("There is no browser here in which pages are loaded with their scripts.");
    const { html, isCut, picture, url } = await this.#browser.render({ url: address, needsPicture }, signal);
    const contentType = "text/html; charset=utf-8";
    const text = await this.#thread.read({ bytes: new TextEncoder().encode(html), contentType, url, form }, signal);
    return { url, ...text, isCut: text.isCut || isCut, isRendered: true, screenshot: picture };
  }

  async close(): Promise<void> {
    await Promise.all([this.#thread.close(), this.#fetcher.close()]);
  }
}

/** A page with scripts that has less text, in characters, is hardly there without them. */
const textLeast = 200;
const isHtml = (contentType: string): boolean => /^(?:text\/html|application\/xhtml\+xml)(?:$|[\s;])/.test(contentType);

/** Bytes that are taken of an answer of this type; undefined: it is not read. */
function most(contentType: string): number | undefined {
  if (isPdf(contentType)) return pdfBytesMost;
  if (isPicture(contentType)) return pictureBytesMost;
  return contentType === "" || textTypes.test(contentType) ? textBytesMost : undefined;
}

const hasPdfHead = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-";
