/** `text[]` for postgres.js, which otherwise asks each server for its array types. */
export const textArray = {
  to: 1009,
  from: [1009],
  serialize: (texts: readonly (string | null)[]): string =>
    `{${texts.map((text) => (text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`)).join(",")}}`,
  parse: (literal: string): (string | null)[] =>
    [...literal.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/gs)].map(([, quoted, plain]) =>
      quoted === undefined ? (plain === "NULL" ? null : (plain ?? "")) : quoted.replace(/\\(.)/gs, "$1"),
    ),
};
