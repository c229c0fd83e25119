import { renderMarkdown, textOfHtml } from "./html.ts";

/** Markdown beyond this length is not rendered to compare: hostile texts take the square of their length. */
const renderedMax = 16_000;

/**
 * Tells if a formatted message says something else than its plain text. Layout, links, punctuation and the markers of
 * Markdown make no difference; words that only one of them has do, be they hidden by styles or not.
 * @param isReply leaves out the quotation of the message replied to
 */
export const saysSomethingElse = (formatted: string, body: string, isReply: boolean): boolean => {
  const said = wordsOf(textOfHtml(formatted, isReply));
  if (said === wordsOf(body)) return false;
  return body.length > renderedMax || said !== wordsOf(textOfHtml(renderMarkdown(body), false));
};

const wordsOf = (text: string): string => text.normalize("NFC").replaceAll(/[\s\p{P}\p{C}`~^+<>|=$]/gu, "");
