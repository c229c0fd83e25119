import { z } from "zod";
import { isObject } from "../../base/lib/json.ts";
import { quote } from "./shown-text.ts";

const helpMost = 200;
const wordsMost = 100;

/**
 * Input of a server's tool, by the parts of its JSON Schema that are simple: names, types, what must be given. The server
 * checks the rest; no pattern of its is ever run here.
 */
export function inputFrom(schema: Readonly<Record<string, unknown>>): z.ZodObject {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const shape = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => {
      const type = typeOf(field).describe(helpOf(field));
      return [name, required.includes(name) ? type : type.optional()];
    }),
  );
  return mayHoldMore(schema, shape) ? z.looseObject(shape) : z.object(shape);
}

/** True if the server says that names which it does not list may be given, or lists none. */
const mayHoldMore = ({ additionalProperties: more, ...schema }: Readonly<Record<string, unknown>>, shape: object) => {
  const combined = ["anyOf", "oneOf", "allOf", "patternProperties", "$ref"].some((word) => Object.hasOwn(schema, word));
  return more === true || isObject(more) || (more !== false && (combined || Object.keys(shape).length === 0));
};

function typeOf(field: unknown): z.ZodType {
  if (!isObject(field)) return z.unknown();
  const words = Array.isArray(field.enum) ? field.enum.filter((word) => typeof word === "string") : [];
  const [first, ...rest] = words;
  if (first !== undefined && rest.length < wordsMost && words.length === (field.enum as unknown[]).length)
    return z.enum([first, ...rest]);
  switch (field.type) {
    case "string":
      return z.string();
    case "integer":
      return z.int();
    case "number":
      return z.number();
    case "boolean":
      return z.boolean();
    case "array":
      return z.array(typeOf(field.items));
    case "object":
      return z.record(z.string(), z.unknown());
    default:
      return z.unknown();
  }
}

/** Explains a field to people, in the server's words. */
const helpOf = (field: unknown): string =>
  isObject(field) && typeof field.description === "string" && field.description.trim() !== ""
    ? quote(field.description, helpMost)
    : "not explained by the server";
