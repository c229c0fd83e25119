import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { problemsOf } from "../../base/lib/problems.ts";

/** The part of JSON Schema in which inputs are described. */
export interface FieldSchema {
  readonly type?: string;
  readonly description?: string;
  /** Text for people in its place. */
  readonly help?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly items?: FieldSchema;
}

/** An input as it is validated, and as it is described to models and people. */
interface Form {
  readonly strict: z.ZodObject;
  readonly json: Record<string, unknown>;
  readonly fields: Readonly<Record<string, FieldSchema>>;
  readonly required: readonly string[];
}

const int32Max = 2_147_483_647;

const forms = new WeakMap<z.ZodObject, Form>();

/** Made once for each input. */
export function formOf(input: z.ZodObject): Form {
  const known = forms.get(input);
  if (known) return known;
  // Where others have said that more may stand in it, more may.
  const strict = input.def.catchall === undefined ? z.strictObject(input.shape) : input;
  const { $schema: _, ...json } = z.toJSONSchema(strict, {
    io: "input",
    // Where a number cannot be held any more need not be said.
    override({ jsonSchema: schema }) {
      if (schema.minimum === Number.MIN_SAFE_INTEGER || schema.minimum === -int32Max - 1) delete schema.minimum;
      if (schema.maximum === Number.MAX_SAFE_INTEGER || schema.maximum === int32Max) delete schema.maximum;
    },
  });
  const fields = { ...json.properties } as Readonly<Record<string, FieldSchema>>;
  const form = { strict, json, fields, required: json.required ?? [] };
  forms.set(input, form);
  return form;
}

/** Parts of a schema that are for people, or tell a model nothing: what is refused says why, and whatever has a text is not empty. */
const untold = new Set(["help", "additionalProperties", "minLength", "maxLength", "pattern"]);

/** The form of an input as models are told it. */
export const toldForm = (input: z.ZodObject): Record<string, unknown> =>
  told(formOf(input).json) as Record<string, unknown>;

const told = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(told);
  if (!isObject(schema)) return schema;
  const { properties, ...rest } = schema;
  const inner = isObject(properties) && Object.entries(properties).map(([name, field]) => [name, told(field)]);
  return Object.fromEntries([
    ...Object.entries(rest).flatMap(([name, value]) => (untold.has(name) ? [] : [[name, told(value)]])),
    ...(inner ? [["properties", Object.fromEntries(inner)]] : []),
  ]);
};

/**
 * A valid input from what was written. Text where a number, a list or yes or no is expected is read as that, and null
 * where nothing has to be said as nothing: people's commands are text, and some models write so. Throws a `UserError` that names each argument that is wrong, what was
 * found and what is expected.
 */
export function readInput(input: z.ZodObject, written: unknown): Record<string, unknown> {
  const { strict, fields, required } = formOf(input);
  const field = (name: PropertyKey | undefined): FieldSchema =>
    typeof name === "string" && Object.hasOwn(fields, name) ? (fields[name] ?? {}) : {};
  const isNothing = (name: string, value: unknown) =>
    value === null && Object.hasOwn(fields, name) && !required.includes(name);
  const values = isObject(written)
    ? Object.fromEntries(
        Object.entries(written).flatMap(([name, value]) =>
          isNothing(name, value) ? [] : [[name, readAs(field(name), value)]],
        ),
      )
    : written;
  const read = strict.safeParse(values, {
    error: ({ code, path = [], ...issue }) =>
      code === "unrecognized_keys"
        ? (issue.keys as string[]).map((key) => unknownName(key, Object.keys(fields))).join("; ")
        : describeExpected(path.length === 0 ? { type: "object" } : path.slice(1).reduce(items, field(path[0]))),
  });
  if (read.success) return read.data;
  throw new UserError(
    problemsOf(read.error, values)
      .map(({ path, line }) => (path === "" ? `arguments: ${line}` : line))
      .join("\n"),
  );
}

const unknownName = (name: string, known: readonly string[]): string => {
  const near = nearest(name, known);
  const hint = near === undefined ? `there are: ${known.join(", ") || "none"}` : `did you mean ${near}?`;
  return `there is no ${JSON.stringify(name)}, ${hint}`;
};

const items = (schema: FieldSchema, key: PropertyKey): FieldSchema =>
  typeof key === "number" ? (schema.items ?? {}) : {};

const answers: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["yes", true],
  ["false", false],
  ["no", false],
]);

/** Reads a text where another type is expected; everything else stays as it was written. */
const readAs = (schema: FieldSchema, value: unknown): unknown => {
  if (typeof value !== "string") return value;
  const text = value.trim();
  switch (schema.type) {
    case "integer":
    case "number":
      return /^[+-]?\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : value;
    case "boolean":
      return answers.get(text.toLowerCase()) ?? value;
    case "array":
      return readList(text).map((item) => readAs(schema.items ?? {}, item));
    case "object":
      return readObject(text) ?? value;
    default:
      return value;
  }
};

const readObject = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** A list as JSON, or with semicolons or line breaks between. */
const readList = (text: string): unknown[] => {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
  } catch {
    // Not JSON.
  }
  return text
    .split(/[;\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");
};

/** The end of "found X, expected …". */
export const describeExpected = ({
  type,
  description,
  help = description,
  enum: words,
  items: each,
  ...schema
}: FieldSchema): string => {
  if (words) return `one of ${words.join(", ")}`;
  switch (type) {
    case "integer":
      return `a whole number${range(schema.minimum, schema.maximum)}`;
    case "number":
      return `a number${range(schema.minimum, schema.maximum)}`;
    case "boolean":
      return "true or false";
    case "array":
      return `a list with semicolons between, each ${describeExpected(each ?? {})}`;
    case "object":
      return "values by their names";
    default: {
      const text = schema.maxLength === undefined ? "a text" : `a text of up to ${schema.maxLength} characters`;
      return help === undefined ? text : `${text}: ${help}`;
    }
  }
};

const range = (least: number | undefined, most: number | undefined): string => {
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  if (least !== undefined) return `, ${least} or more`;
  return most === undefined ? "" : `, ${most} or less`;
};
