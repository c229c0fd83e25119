import { XMLParser } from "fast-xml-parser";
import { type Article, pageToMarkdown, plainMarkdown } from "./read-html.ts";

/** Work for the thread that reads: an answer as it came. */
export interface ReadingJob {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  readonly url: string;
  /** `html`: the source of a page, not its text. */
  readonly form: "markdown" | "html";
  /** The thorough way took too long before: the quick one takes its place. */
  readonly isQuick: boolean;
}

/** The text that an answer holds. */
export interface ReadText extends Article {
  readonly contentType: string;
  /** The text went on. */
  readonly isCut: boolean;
}

/** Characters that are kept of a text. */
export const textMost = 200_000;
const titleMost = 200;
const entriesMost = 100;

/** Reads a text of the web: a page as Markdown, a feed as a list, JSON with its structure, everything else as it is. */
export async function readText({ bytes, contentType, url, form, isQuick }: ReadingJob): Promise<ReadText> {
  const raw = decoded(bytes, contentType);
  const type = contentType.split(";")[0]?.trim() ?? "";
  if (/^(?:text\/html|application\/xhtml\+xml)$/.test(type)) {
    if (form === "html") return cut({ text: raw, title: undefined, isWhole: true }, "text/html");
    return cut(await pageToMarkdown(raw, url, isQuick), "text/markdown");
  }
  if (/[/+]xml$/.test(type)) {
    const feed = form === "html" ? undefined : readFeed(raw, url);
    return feed ? cut(feed, "text/markdown") : cut({ text: raw, title: undefined, isWhole: true }, type);
  }
  if (/[/+]json$/.test(type)) return cut({ text: indented(raw), title: undefined, isWhole: true }, type);
  return cut({ text: raw, title: undefined, isWhole: true }, type || "text/plain");
}

function cut({ text, title, isWhole }: Article, contentType: string): ReadText {
  // The database holds neither NUL nor halves of characters.
  const storable = text.replaceAll("\0", "").replaceAll("\r\n", "\n").toWellFormed().trim();
  const named = title?.replaceAll("\0", "").replace(/\s+/g, " ").toWellFormed().trim().slice(0, titleMost);
  return {
    text: storable.slice(0, textMost).toWellFormed(),
    title: named || undefined,
    isWhole,
    contentType,
    isCut: storable.length > textMost,
  };
}

/** Text of the bytes: in the charset of the header, or of the page itself, or UTF-8. */
function decoded(bytes: Uint8Array<ArrayBuffer>, contentType: string): string {
  const said = /charset="?([\w.:-]+)/.exec(contentType)?.[1];
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 2_048));
  const own =
    /<meta[^>]{0,200}charset=["']?([\w.:-]+)/i.exec(head) ?? /^<\?xml[^>]{0,100}encoding=["']([\w.:-]+)/.exec(head);
  for (const label of [said, own?.[1]]) {
    if (label === undefined) continue;
    try {
      return new TextDecoder(label).decode(bytes);
    } catch {
      // A charset that nobody knows.
    }
  }
  return new TextDecoder().decode(bytes);
}

const indented = (json: string): string => {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 1);
  } catch {
    return json;
  }
};

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null;
const listOf = (value: unknown): Node[] => [value].flat().filter(isNode);
const wordsOf = (value: unknown): string => {
  const first = [value].flat()[0];
  if (isNode(first)) return wordsOf(first["#text"] ?? first["@href"]);
  return first === undefined ? "" : String(first).trim();
};

/** RSS, RDF or Atom as a list of its entries; undefined for other XML. */
function readFeed(xml: string, url: string): Article | undefined {
  if (!/<(?:rss|feed|rdf:RDF)[\s>]/.test(xml.slice(0, 4_096))) return undefined;
  let tree: Node;
  try {
    const parser = new XMLParser({
      ignoreAttributes: false,
      attributeNamePrefix: "@",
      processEntities: true,
      htmlEntities: true,
    });
    tree = parser.parse(xml) as Node;
  } catch {
    return undefined;
  }
  const { rss, feed, "rdf:RDF": rdf } = tree as Readonly<Record<string, Node | undefined>>;
  const channel = (listOf(rss?.channel)[0] ?? feed ?? listOf(rdf?.channel)[0]) as Node | undefined;
  if (!channel) return undefined;
  const entries = [...listOf(channel.item), ...listOf(channel.entry), ...listOf(rdf?.item)].slice(0, entriesMost);
  const text = entries.map((entry) => {
    const link = wordsOf(listOf(entry.link).find((one) => one["@rel"] === "alternate") ?? entry.link);
    const at = wordsOf(entry.pubDate ?? entry.published ?? entry.updated ?? entry["dc:date"]);
    const summary = wordsOf(entry.description ?? entry.summary ?? entry.content);
    const lines = [`## ${wordsOf(entry.title)}`, [at, link].filter((part) => part !== "").join(" ")];
    return [...lines, plainMarkdown(summary, url)].filter((line) => line !== "").join("\n");
  });
  return { text: text.join("\n\n"), title: wordsOf(channel.title), isWhole: true };
}
