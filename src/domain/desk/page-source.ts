import { readImage } from "../../adapters/images/image.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { bytesDigest } from "../../base/lib/ids.ts";
import { addressesIn } from "../../base/lib/web-address.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { WindowSource } from "./windows.ts";

/** A page as it was read. */
interface ReadPage {
  /** Address behind all redirects. */
  readonly url: string;
  readonly title: string | undefined;
  readonly text: string;
  readonly contentType: string;
  /** All that is on the page, menus included. */
  readonly isWhole: boolean;
  /** The text went on. */
  readonly isCut: boolean;
  /** The image that is there, in place of a text. */
  readonly picture?: Uint8Array | undefined;
  /** The page as a browser shows it, beside its text. */
  readonly screenshot?: Uint8Array | undefined;
  /** A browser has loaded it, with its scripts. */
  readonly isRendered?: boolean | undefined;
  /** Why it is shown without its scripts, although it is empty so. */
  readonly problem?: string | undefined;
}

/** Reads pages of the web. */
export interface WebPages {
  /** @param options `needsPicture`: with a picture of the page as a browser shows it */
  read(
    address: string,
    options: { readonly form: "markdown" | "html"; readonly needsPicture?: boolean },
    signal: AbortSignal,
  ): Promise<ReadPage>;
}

/** Arguments of a page, beside its address. */
export interface PageArguments {
  readonly mode: "markdown" | "html";
  /** With a picture of the page as a browser shows it. */
  readonly screenshot?: true | undefined;
}

/** Addresses of one page, or of the results of one search, that the agent may open unasked. */
const addressesMost = 5_000;

/** Name of a host's texts among those that nobody vouches for. */
export const webTaint = (url: string): string => `web:${new URL(url).host}`;

/** Throws a `UserError` where pages cannot be opened. */
export function requirePages(pages: WebPages | undefined): WebPages {
  if (pages) return pages;
  throw new UserError("Pages cannot be opened here: web.pages is off in config.yaml.");
}

const labelMost = 300;

/** The image at an address, as the agent is shown it, and its size in words. */
async function pictureAt(url: string, bytes: Uint8Array) {
  const image = await readImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (!image) throw new UserError(`The image at ${url} cannot be shown: it is broken, or very large.`);
  const { contentType, height, width } = image;
  const label = `image at ${url.slice(0, labelMost)}`;
  // The checksum tells a refresh whether it is another image.
  const content = `An image of ${width} × ${height} pixels, checksum ${bytesDigest(bytes).slice(0, 8)}.`;
  return { content, contentType, images: [{ label, bytes: image.bytes }] };
}

/** A page of the web, as it was when it was fetched. */
export const pageSource = (pages: WebPages | undefined, clock: Clock): WindowSource => ({
  async read(address, args, { signal }) {
    const { mode, screenshot: needsPicture = false } = JSON.parse(args) as PageArguments;
    const page = await requirePages(pages).read(address, { form: mode, needsPicture }, signal);
    const { url, title, text, contentType, isWhole, isCut, isRendered, picture, problem, screenshot } = page;
    const note =
      problem !== undefined
        ? `hardly there without its scripts: ${problem}`
        : text === "" && !picture
          ? `the page has no text${isRendered ? ", also not with JavaScript" : ""}`
          : undefined;
    const seen = screenshot && [{ label: `screenshot of ${url.slice(0, labelMost)}`, bytes: Buffer.from(screenshot) }];
    return {
      ...(picture ? await pictureAt(url, picture) : { contentType, content: text, images: seen }),
      sources: [],
      taint: [...new Set([webTaint(address), webTaint(url)])],
      title,
      attributes: {
        ...(url !== address && { finalAddress: url }),
        fetchedAt: eventTime(clock.now()),
        ...(isRendered && { loadedBy: "browser" }),
        ...(note !== undefined && { note }),
        ...(isCut && { part: "beginning" }),
        // No article was found in it: menus and the like are shown as well.
        ...(!isCut && isWhole && contentType === "text/markdown" && { part: "whole page" }),
      },
      addresses: addressesIn(`${address}\n${url}\n${text}`, addressesMost),
    };
  },
});
