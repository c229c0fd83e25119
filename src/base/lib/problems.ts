import { z } from "zod";
import { isObject } from "./json.ts";
import { nearest } from "./nearest.ts";

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
    const isHidden = isSecret(path) && found !== undefined;
    return { path, line: `${at}${isHidden ? "found a value not shown" : describe(found)}, expected ${issue.message}` };
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
  const meant = nearest(key, known);
  return `unknown key ${JSON.stringify(key)}, ${meant ? `did you mean "${meant}"?` : `known are ${known.join(", ")}`}`;
};
