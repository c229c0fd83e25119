/** Kinds of entries that an agent makes in its LOG.md; the bridge adds calls (`TOOL_USE`), `ERROR` and `SUMMARY`. */
export const entryTypes = ["TOOL_USE", "THOUGHT", "USER_FEEDBACK"] as const;
type EntryType = (typeof entryTypes)[number] | "ERROR" | "SUMMARY";

/** An entry of LOG.md. Only its first line begins without a space, so that no text can pass for an entry of its own. */
export const activityEntry = (at: Date, type: EntryType, content: string): string =>
  `[${at.toISOString().slice(0, 19).replace("T", " ")}] ${type}: ${content.trim().replace(/\r\n?|\n/g, "\n  ")}\n`;
