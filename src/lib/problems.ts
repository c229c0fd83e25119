import { z } from "zod";
import { isObject } from "./json.ts";

/**
 * An object with these keys and no others. The messages of the schemas in it say what is expected, as the end of
 * the sentence "found X, expected …".
 * @param refused keys that people may well write, with the reason why they have no place here
 */
export const section = <Shape extends z.ZodRawShape>(shape: Shape, refused: Readonly<Record<string, string>> = {}) =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => refused[key] ?? unknown(key, Object.keys(shape))).join("; ")
        : `settings (${Object.keys(shape).join(", ")})`,
  });

/**
 * Everything that is wrong, one line each: `path: found X, expected Y`.
 * @param value what was read: the found values are looked up in it
 * @param isSecret values that must not be repeated
 */
export const problemsOf = (
  error: z.ZodError,
  value: unknown,
  isSecret: (path: string) => boolean = () => false,
): { readonly path: string; readonly line: string }[] =>
  error.issues.map((issue) => {
    const path = pathText(issue.path);
    const at = path === "" ? "" : `${path}: `;
    if (issue.code === "unrecognized_keys") return { path, line: at + issue.message };
    if (issue.code === "invalid_key") return { path, line: at + (issue.issues[0]?.message ?? issue.message) };
    const found = issue.path.reduce<unknown>(inside, value);
    const hidden = isSecret(path) && found !== undefined;
    return { path, line: `${at}${hidden ? "found a value not shown" : describe(found)}, expected ${issue.message}` };
  });

const inside = (outer: unknown, key: PropertyKey): unknown =>
  typeof outer === "object" && outer !== null ? Reflect.get(outer, key) : undefined;

const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    const name = String(key);
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`;
    return text === "" ? name : `${text}.${name}`;
  }, "");

const describe = (value: unknown): string => {
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "found a list";
  if (isObject(value)) return "found settings";
  const text = JSON.stringify(value);
  return `found ${text.length > 80 ? `${text.slice(0, 80)}…` : text}`;
};

const unknown = (key: string, known: readonly string[]): string => {
  const nearest = known
    .map((name) => ({ name, distance: editDistance(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(1, name.length / 3))
    .sort((a, b) => a.distance - b.distance)[0];
  return `unknown key ${JSON.stringify(key)}, ${nearest ? `did you mean "${nearest.name}"?` : `known are ${known.join(", ")}`}`;
};

/** Levenshtein: how many letters have to be put in, taken out or changed. */
const editDistance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const changed = (row[j] ?? 0) + (b[j] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
};
