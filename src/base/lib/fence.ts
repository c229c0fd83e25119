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
    else if (closes(line, open)) open = "";
  }
  return open.length <= longest ? open : "";
};

const closes = (line: string, open: string): boolean => {
  const marker = markerOf(line).trim();
  return marker !== "" && line.trim() === marker && marker.startsWith(markerOf(open).trim());
};

/** Text in the code block that a Markdown text is, with nothing before or behind it; undefined where it is something else. */
export const onlyBlock = (text: string): string | undefined => {
  const [open = "", ...rest] = text.trim().split("\n");
  const end = markerOf(open) === "" ? -1 : rest.findIndex((line) => closes(line, open));
  return end >= 0 && end === rest.length - 1 ? rest.slice(0, end).join("\n") : undefined;
};

/** Indentation and fence with which a line opens or closes a code block, or "". */
export const markerOf = (line: string): string => /^ {0,3}(?:`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[0] ?? "";
