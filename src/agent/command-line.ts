import { z } from "zod";
import { UserError } from "../lib/errors.ts";
import type { AnyTool } from "./tool.ts";

/**
 * A command's arguments by the tool's input: `--name value` for any field, then the required fields by position, the
 * last of which takes the rest of the line. Values are text; the input's schema makes them what they are.
 */
export function readCommandLine(tool: AnyTool, line: string): Record<string, unknown> {
  const { named, rest } = takeNamed(tool, line.trim());
  const positional = positionalFields(tool).filter((field) => !(field in named));
  const values: Record<string, unknown> = { ...named };
  let left = rest;
  for (const [index, field] of positional.entries()) {
    if (left === "") break;
    const end = index === positional.length - 1 ? left.length : left.search(/\s|$/);
    values[field] = left.slice(0, end);
    left = left.slice(end).trim();
  }
  if (left !== "") throw new UserError(`"${left}" is too much.`);
  const read = z.strictObject(tool.input.shape).safeParse(values);
  if (read.success) return read.data as Record<string, unknown>;
  throw new UserError(
    read.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`).join("\n"),
  );
}

/** How a command is written: `!say [--roomId …] [--final] <content>`. */
export function usageOf(tool: AnyTool, prefix: string): string {
  const positional = positionalFields(tool);
  const named = Object.keys(tool.input.shape).filter((field) => !positional.includes(field));
  const words = [
    ...named.map((field) => `[--${field}${isSwitch(tool.input.shape[field]) ? "" : " …"}]`),
    ...positional.map((field) => `<${field}>`),
  ];
  return [`${prefix}${tool.command}`, ...words].join(" ");
}

/** The same, with what each part means. */
export function helpFor(tool: AnyTool, prefix: string): string {
  const described = z.toJSONSchema(tool.input).properties ?? {};
  const fields = Object.entries(described).map(
    ([field, schema]) => `- \`${field}\`: ${(typeof schema === "object" && schema.description) || ""}`,
  );
  return [`\`${usageOf(tool, prefix)}\``, "", tool.description, "", ...fields].join("\n");
}

const isOptional = (schema: unknown): boolean => (schema as z.ZodType).safeParse(undefined).success;

/** Named without a value. */
const isSwitch = (schema: unknown): boolean =>
  (schema as z.ZodType).safeParse(true).data === true && !(schema as z.ZodType).safeParse("true").success;

const positionalFields = (tool: AnyTool): string[] =>
  Object.entries(tool.input.shape)
    .filter(([, schema]) => !isOptional(schema))
    .map(([field]) => field);

/** Named arguments stand before the text that takes the rest of the line; a text that begins with `--` is no name. */
function takeNamed(tool: AnyTool, line: string): { named: Record<string, unknown>; rest: string } {
  const named: Record<string, unknown> = {};
  let rest = line;
  for (;;) {
    const found = /^--([A-Za-z]\w*)(?:[ \t]+|=|$)/.exec(rest);
    const field = found?.[1];
    if (!found || field === undefined || !Object.hasOwn(tool.input.shape, field)) return { named, rest };
    rest = rest.slice(found[0].length);
    if (isSwitch(tool.input.shape[field])) {
      named[field] = true;
      continue;
    }
    const value = /^"([^"]*)"\s*|^(\S*)\s*/.exec(rest);
    named[field] = value?.[1] ?? value?.[2] ?? "";
    rest = rest.slice(value?.[0].length ?? 0);
  }
}
