import MarkdownIt from "markdown-it";
import sanitizeHtml from "sanitize-html";

/**
 * HTML in Markdown stays text. Pictures become links: clients would fetch them unasked, and the address could carry
 * a secret away. Definitions of references are off, since they would vanish.
 */
export const markdownIt = new MarkdownIt({ html: false, breaks: true }).disable(["image", "reference"]);
markdownIt.validateLink = (url) => /^(?:https?:\/\/|mailto:)/i.test(url);

/** Elements and attributes that Markdown can become, all of them allowed by the specification. */
const sanitizing: sanitizeHtml.IOptions = {
  allowedTags: [
    ...["h1", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "ul", "ol", "li", "pre", "hr", "br"],
    ...["a", "em", "strong", "del", "code", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  allowedAttributes: { a: ["href"], ol: ["start"] },
  allowedClasses: { code: ["language-*"] },
  allowedSchemes: ["http", "https", "mailto"],
  allowProtocolRelative: false,
  transformTags: { s: "del" },
};

export type Token = ReturnType<typeof markdownIt.parse>[number];

/** HTML that is safe to show, from Markdown that was parsed. */
export const renderTokens = (tokens: Token[]): string =>
  sanitizeHtml(markdownIt.renderer.render(tokens, markdownIt.options, {}), sanitizing).trim();

/** HTML that is safe to show, from any text. */
export const renderMarkdown = (text: string): string => renderTokens(markdownIt.parse(text, {}));

/**
 * The text of HTML. Pictures are their alternative text; scripts and styles are shown nowhere and say nothing.
 * @param dropsReply leaves out the quotation of the message replied to
 */
export const textOfHtml = (html: string, dropsReply: boolean): string =>
  sanitizeHtml(html, {
    allowedTags: ["img"],
    allowedAttributes: { img: ["alt"] },
    nonTextTags: ["script", "style", ...(dropsReply ? ["mx-reply"] : [])],
  })
    .replaceAll(/<img(?: alt="([^"]*)")? \/>/g, "$1")
    .replaceAll(/&(amp|lt|gt|quot);/g, (_, name: string) => entities[name] ?? "");

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
