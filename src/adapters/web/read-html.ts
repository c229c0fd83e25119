import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Defuddle } from "defuddle/node";
import { parseHTML } from "linkedom";
import { htmlToMarkdownResult, initSync } from "mdream/wasm/mdream_edge.js";

/** A text with its title. */
export interface Article {
  readonly title: string | undefined;
  readonly text: string;
  /** All that is on the page, menus included: the article in it was not looked for, or not found. */
  readonly isWhole: boolean;
}

/** A page that is larger, in characters, or nested deeper is not searched for its article: that would take too long. */
const thoroughMost = 1_000_000;
const depthMost = 500;
/** An article of fewer characters is hardly what the page is about. */
const articleLeast = 200;

/** The article of a page as Markdown, or all of the page. Takes seconds for some pages: for a thread of its own. */
export async function pageToMarkdown(html: string, url: string, isQuick: boolean): Promise<Article> {
  const whole = (): Article => ({ title: titleOf(html), text: plainMarkdown(html, url), isWhole: true });
  if (isQuick || html.length > thoroughMost || isTooDeep(html)) return whole();
  const article = await articleOf(html, url).catch(() => undefined);
  return article && article.text.length >= articleLeast ? article : whole();
}

async function articleOf(html: string, url: string): Promise<Article> {
  const { document } = parseHTML(html);
  // Markdown knows no captions of tables, and they would be lost.
  for (const caption of document.querySelectorAll("table > caption")) {
    const line = document.createElement("p");
    line.textContent = caption.textContent;
    caption.parentNode?.parentNode?.insertBefore(line, caption.parentNode);
    caption.remove();
  }
  // With `useAsync` some of its extractors would ask the net by themselves, past all walls.
  const found = await Defuddle(document as unknown as Parameters<typeof Defuddle>[0], url, {
    markdown: true,
    useAsync: false,
  });
  return { title: found.title || titleOf(html), text: clean(found.contentMarkdown ?? found.content), isWhole: false };
}

let isReady = false;

/** Turns HTML into Markdown as it stands, in time that grows with its length alone. */
export function plainMarkdown(html: string, url: string): string {
  if (!isReady) {
    const wasm = fileURLToPath(import.meta.resolve("mdream/wasm/mdream_edge_bg.wasm"));
    initSync({ module: readFileSync(wasm) });
    isReady = true;
  }
  const { markdown } = htmlToMarkdownResult(html, { origin: new URL(url).origin }) as { readonly markdown: string };
  return clean(markdown);
}

const titleOf = (html: string): string | undefined => {
  const title = /<title[^>]{0,200}>([^<]{0,1000})/i.exec(html)?.[1];
  return title === undefined ? undefined : plainMarkdown(title, "https://title.invalid/");
};

/** True if elements stand so deep in one another that building a tree of them could end the thread. */
function isTooDeep(html: string): boolean {
  let depth = 0;
  for (const [, end, name = ""] of html.matchAll(/<(\/?)([a-z][\w-]{0,30})\b/gi)) {
    if (/^(?:br|hr|img|input|link|meta|p|li|td|th|tr|option|source|path|wbr|col|area|use|rect|circle)$/i.test(name))
      continue;
    depth = Math.max(0, depth + (end ? -1 : 1));
    if (depth > depthMost) return true;
  }
  return false;
}

/** Takes out elements that stayed as HTML, and pictures that are written out in the text. */
const clean = (markdown: string): string =>
  markdown
    .replace(/<\/?(?:iframe|script|style|object|embed|video|audio|source|form|input|button)\b[^>]{0,2000}>/gi, "")
    .replace(/!\[[^\]\n]{0,300}\]\(data:[^)\s]*\)/gi, "");
