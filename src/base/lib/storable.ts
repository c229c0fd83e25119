/** The text with U+FFFD in place of what no PostgreSQL text can hold: NUL, and halves of characters. */
export const toStorable = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");

/** Makes every text in a JSON value storable; keys stay as they are. */
export const storableJson = <Value>(value: Value): Value =>
  JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
    typeof inner === "string" ? toStorable(inner) : inner,
  ) as Value;
