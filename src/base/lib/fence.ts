/**
 * The line that opened the code block in which a Markdown text ends, or its fence where that line is longer than
 * `longest`; "" where it ends in none. Fences in lists and quotations end with those.
 */
export const openFence = (text: string, longest = Number.POSITIVE_INFINITY): string => {
  let open = "";
  for (const line of text.split("\n")) {
    const marker = markerOf(line);
    if (marker === "") continue;
    if (open === "") open = line.length <= longest ? line : marker;
    else if (line.trim() === marker.trim() && marker.trim().startsWith(markerOf(open).trim())) open = "";
  }
  return open.length <= longest ? open : "";
};

/** Indentation and fence with which a line opens or closes a code block, or "". */
export const markerOf = (line: string): string => /^ {0,3}(?:`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[0] ?? "";
