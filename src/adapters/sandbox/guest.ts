/** End of a computation, inside the interpreter. */
interface Settled {
  readonly value?: string | undefined;
  readonly error?: string;
  readonly stack?: string;
}

/**
 * Gives the interpreter all that it has beyond the language itself. The text of this function is evaluated there, so it
 * may use nothing from outside of itself. Makes the global `console`, whose texts go to `print`. Returns a function that
 * settles a computation's completion.
 */
export function guest(print: (text: string) => void): (completion: Promise<{ value: unknown }>) => Promise<Settled> {
  /** Values that JSON has no form for; a text for what has none at all. */
  const plain = (_key: string, value: unknown): unknown => {
    if (typeof value === "bigint" || typeof value === "symbol") return String(value);
    if (typeof value === "number" && !Number.isFinite(value)) return String(value);
    if (typeof value === "function") return `[function ${value.name}]`;
    if (value instanceof Map) {
      const entries = [...value];
      return entries.every(([key]) => typeof key === "string") ? Object.fromEntries(entries) : entries;
    }
    if (value instanceof Set) return [...value];
    if (value instanceof Error || value instanceof RegExp) return String(value);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Uint8Array);
    return value;
  };
  const show = (value: unknown): string => {
    if (typeof value === "string") return value;
    if (Object.is(value, -0)) return "-0";
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    const text = plain("", value);
    if (typeof text === "string") return text;
    return JSON.stringify(text, plain) ?? String(text);
  };
  const log = (...values: unknown[]): void => print(values.map(show).join(" "));
  Object.assign(globalThis, { console: { log, info: log, warn: log, error: log, debug: log } });
  return (completion) =>
    completion
      .then(({ value }) => value)
      .then((value) => ({ value: value === undefined ? undefined : show(value) }))
      .catch((error: unknown) =>
        error instanceof Error
          ? { error: String(error), stack: String(error.stack) }
          : { error: `thrown: ${show(error)}` },
      );
}
