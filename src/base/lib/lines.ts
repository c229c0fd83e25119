const feed = 10;
const carriage = 13;

/** Calls `each` with the index at which each line begins. */
const eachLine = (text: string, each: (start: number) => void): void => {
  // Two loops, and not one that looks for both: when V8 has optimized that, it looks for the one that is not there to
  // the end of the text at each turn.
  if (!text.includes("\r")) {
    for (let at = 0, end = 0; at < text.length; at = end + 1) {
      each(at);
      end = text.indexOf("\n", at);
      if (end < 0) return;
    }
    return;
  }
  let isStart = true;
  for (let at = 0; at < text.length; at += 1) {
    if (isStart) each(at);
    const code = text.charCodeAt(at);
    isStart = code === feed || (code === carriage && text.charCodeAt(at + 1) !== feed);
  }
};

/**
 * Finds the place at which each line begins. `\n`, `\r\n` and `\r` end a line; a line end at the very end begins no
 * further line, and empty text has none.
 */
export const lineStarts = (text: string): number[] => {
  const starts: number[] = [];
  eachLine(text, (start) => starts.push(start));
  return starts;
};

/** Lines as a person counts them. */
export const lineCount = (text: string): number => {
  let count = 0;
  eachLine(text, () => {
    count += 1;
  });
  return count;
};
