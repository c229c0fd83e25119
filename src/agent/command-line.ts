import { z } from "zod";
import { UserError } from "../lib/errors.ts";

/** What people write after the prefix: a tool's command, or one of the bridge's own. */
export interface Commandable {
  /** The words that call it. */
  readonly command?: string;
  readonly description: string;
  /** Every field is described. */
  readonly input: z.ZodObject;
  /** Optional fields that are given by position as well, after the required ones. */
  readonly positional?: readonly string[];
  /** No positional value holds a space, so that named ones may stand behind them as well. */
  readonly namedLast?: boolean;
}

/**
 * A command's arguments by its input: `--name value` for any field, then the required fields by position, the
 * last of which takes the rest of the line. Values are text; the input's schema makes them what they are.
 */
export function readCommandLine(form: Commandable, line: string): Record<string, unknown> {
  const { named, rest } = takeNamed(form, line.trim());
  const positional = positionalFields(form).filter((field) => !(field in named));
  const values: Record<string, unknown> = { ...named };
  let left = rest;
  for (const [index, field] of positional.entries()) {
    if (left === "") break;
    const takesRest = index === positional.length - 1 && !form.namedLast;
    const end = takesRest ? left.length : left.search(/\s|$/);
    values[field] = left.slice(0, end);
    left = left.slice(end).trim();
    if (form.namedLast) {
      const more = takeNamed(form, left);
      Object.assign(values, more.named);
      left = more.rest;
    }
  }
  if (left !== "") throw new UserError(`"${left}" is too much.`);
  const read = z.strictObject(form.input.shape).safeParse(values);
  if (read.success) return read.data as Record<string, unknown>;
  throw new UserError(
    read.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`).join("\n"),
  );
}

/** How a command is written: `!say [--roomId …] [--final] <content>`. */
export function usageOf(form: Commandable, prefix: string): string {
  const positional = positionalFields(form);
  const named = Object.keys(form.input.shape).filter((field) => !positional.includes(field));
  const flags = named.map((field) => `[--${field}${isSwitch(form.input.shape[field]) ? "" : " …"}]`);
  const places = positional.map((field) => (form.positional?.includes(field) ? `[${field}]` : `<${field}>`));
  const words = form.namedLast ? [...places, ...flags] : [...flags, ...places];
  return [`${prefix}${form.command}`, ...words].join(" ");
}

/** The same, with what each part means. */
export function helpFor(form: Commandable, prefix: string): string {
  const described = z.toJSONSchema(form.input).properties ?? {};
  const fields = Object.entries(described).map(
    ([field, schema]) => `- \`${field}\`: ${(typeof schema === "object" && schema.description) || ""}`,
  );
  return [`\`${usageOf(form, prefix)}\``, "", form.description, "", ...fields].join("\n");
}

const isOptional = (schema: unknown): boolean => (schema as z.ZodType).safeParse(undefined).success;

/** Named without a value. */
const isSwitch = (schema: unknown): boolean =>
  (schema as z.ZodType).safeParse(true).data === true && !(schema as z.ZodType).safeParse("true").success;

const positionalFields = (form: Commandable): string[] => [
  ...Object.entries(form.input.shape)
    .filter(([, schema]) => !isOptional(schema))
    .map(([field]) => field),
  ...(form.positional ?? []),
];

/** Named arguments stand before the text that takes the rest of the line; a text that begins with `--` is no name. */
function takeNamed(form: Commandable, line: string): { named: Record<string, unknown>; rest: string } {
  const named: Record<string, unknown> = {};
  let rest = line;
  for (;;) {
    const found = /^--([A-Za-z]\w*)(?:[ \t]+|=|$)/.exec(rest);
    const field = found?.[1];
    if (!found || field === undefined || !Object.hasOwn(form.input.shape, field)) return { named, rest };
    rest = rest.slice(found[0].length);
    if (isSwitch(form.input.shape[field])) {
      named[field] = true;
      continue;
    }
    const value = /^"([^"]*)"\s*|^(\S*)\s*/.exec(rest);
    named[field] = value?.[1] ?? value?.[2] ?? "";
    rest = rest.slice(value?.[0].length ?? 0);
  }
}
