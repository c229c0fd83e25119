const tag = /<(\/?)think(?:ing)?>/gi;

/**
 * Separates what a model thinks aloud in `<think>` blocks from what it says. A block that is never closed reaches to
 * the end; a closing tag without an opening one (chat templates that open the block in the prompt) makes a thought of
 * what stands before it. Both parts come back trimmed.
 */
export const splitThoughts = (content: string): { text: string; thought: string } => {
  const said: string[] = [];
  const thoughts: string[] = [];
  let start = 0;
  let isThinking = false;
  for (const match of content.matchAll(tag)) {
    const isClosing = match[1] === "/";
    (isThinking || isClosing ? thoughts : said).push(content.slice(start, match.index));
    isThinking = !isClosing;
    start = match.index + match[0].length;
  }
  (isThinking ? thoughts : said).push(content.slice(start));
  return { text: said.join("").trim(), thought: joinThoughts(thoughts) };
};

/** Thoughts of several sources as one text, a blank line between them. */
export const joinThoughts = (thoughts: readonly string[]): string =>
  thoughts
    .map((thought) => thought.trim())
    .filter((thought) => thought !== "")
    .join("\n\n");
