/** The text with U+FFFD in place of what no PostgreSQL text can hold: NUL, and halves of characters. */
export const storable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");
