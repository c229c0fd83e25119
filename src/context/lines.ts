/**
 * Where each line begins. `\n`, `\r\n` and `\r` end a line; a line end at the very end begins no further line, and
 * empty text has none.
 */
export const lineStarts = (text: string): number[] => {
  const starts: number[] = [];
  let feed = text.indexOf("\n");
  let carriage = text.indexOf("\r");
  for (let at = 0; at < text.length; ) {
    starts.push(at);
    if (feed >= 0 && feed < at) feed = text.indexOf("\n", at);
    if (carriage >= 0 && carriage < at) carriage = text.indexOf("\r", at);
    if (feed < 0 && carriage < 0) break;
    if (carriage >= 0 && (feed < 0 || carriage < feed)) at = carriage + (feed === carriage + 1 ? 2 : 1);
    else at = feed + 1;
  }
  return starts;
};

/** Lines as a person counts them. */
export const lineCount = (text: string): number => lineStarts(text).length;
