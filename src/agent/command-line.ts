import type { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { expected, type FieldSchema, formOf, readInput } from "./arguments.ts";

/** What people write after the prefix: a tool's command, or one of the bridge's own. */
export interface Commandable {
  /** The words that call it, one or two. */
  readonly command?: string;
  /** Other words that call it. */
  readonly aliases?: readonly string[];
  /** A tool's name, which calls it as well. */
  readonly name?: string;
  readonly description: string;
  /** Every field is described. */
  readonly input: z.ZodObject;
  /** Optional fields that are given by position as well, after the required ones. */
  readonly positional?: readonly string[];
  /** No positional value holds a space, so that named ones may stand behind them as well. */
  readonly namedLast?: boolean;
  /** What may stand behind the command. */
  readonly examples?: readonly string[];
}

/** All words that call it, those that people are told first. */
export const wordsFor = ({ command, aliases = [], name }: Commandable): string[] =>
  [command, ...aliases, name?.toLowerCase() === command ? undefined : name].filter((words) => words !== undefined);

/** What people are told to write. */
export const commandOf = (form: Commandable): string => wordsFor(form)[0] ?? "";

/** The form that a line begins with, the longest words first, and the rest of the line. */
export function findForm<Form extends Commandable>(
  forms: readonly Form[],
  line: string,
): { readonly form: Form; readonly rest: string } | undefined {
  const found = forms
    .flatMap((form) => wordsFor(form).map((words) => ({ form, words, length: lengthOf(words, line) })))
    .filter(({ length }) => length > 0)
    .sort((a, b) => b.length - a.length)[0];
  if (!found) return undefined;
  const rest = line.slice(found.length).trim();
  const takesNothing = Object.keys(found.form.input.shape).length === 0;
  // `todo lsit` is no `todo` with an argument.
  if (rest !== "" && takesNothing && familyOf(forms, found.words).length > 0) return undefined;
  return { form: found.form, rest };
}

/** Commands of two words of which this is the first. */
export const familyOf = (forms: readonly Commandable[], word: string): string[] =>
  forms.flatMap((form) => wordsFor(form).filter((words) => words.startsWith(`${word} `)));

/** How many characters of the line are these words; 0 if it begins with others. */
const lengthOf = (words: string, line: string): number => {
  const pattern = words.split(" ").join(String.raw`\s+`);
  return new RegExp(`^${pattern}(?=\\s|$)`, "i").exec(line)?.[0].length ?? 0;
};

/**
 * A command's arguments by its input: `--name value` for any field, then the required fields by position, the last of
 * which takes the rest of the line, as it is. A value with spaces stands in quotes elsewhere; `--` ends the named ones.
 * Values are text: see `readInput`.
 */
export function readCommandLine(form: Commandable, line: string): Record<string, unknown> {
  const places = positionalFields(form);
  const { named, rest } = takeNamed(form, line.trim(), places.length > 1 || form.namedLast === true);
  const positional = places.filter((field) => !(field in named));
  const values: Record<string, unknown> = { ...named };
  let left = rest;
  for (const [index, field] of positional.entries()) {
    if (left === "") break;
    const takesRest = index === positional.length - 1 && !form.namedLast;
    const value = takesRest ? { text: left, length: left.length } : firstWord(left);
    values[field] = value.text;
    left = left.slice(value.length).trim();
    if (form.namedLast) {
      const more = takeNamed(form, left, true);
      Object.assign(values, more.named);
      left = more.rest;
    }
  }
  if (left !== "") throw new UserError(`"${left}" is too much.`);
  return readInput(form.input, values);
}

/** How a command is written: `!say [--roomId …] [--final] <content>`. */
export function usageOf(form: Commandable, prefix: string): string {
  const { fields } = formOf(form.input);
  const positional = positionalFields(form);
  const named = Object.keys(fields).filter((field) => !positional.includes(field));
  const flags = named.map((field) => `[--${field}${isSwitch(fields[field]) ? "" : " …"}]`);
  const places = positional.map((field) => (form.positional?.includes(field) ? `[${field}]` : `<${field}>`));
  const words = form.namedLast ? [...places, ...flags] : [...flags, ...places];
  return [`${prefix}${commandOf(form)}`, ...words].join(" ");
}

/** The same, with what each part means, examples, and other words for it. */
export function helpFor(form: Commandable, prefix: string): string {
  const described = Object.entries(formOf(form.input).fields).map(([field, schema]) => {
    const { description = "", default: usual } = schema;
    const facts = [
      ...(schema.type === "string" && !schema.enum ? [] : [expected(schema)]),
      ...(usual === undefined ? [] : [`without it ${usual}`]),
    ];
    return `- \`${field}\`: ${description}${facts.length > 0 ? ` (${facts.join("; ")})` : ""}`;
  });
  const command = `${prefix}${commandOf(form)}`;
  const examples = (form.examples ?? []).map((example) => `\`${command} ${example}\``);
  const others = wordsFor(form).slice(1);
  return [
    `\`${usageOf(form, prefix)}\``,
    form.description,
    described.join("\n"),
    examples.length > 0 ? `For example: ${examples.join(", ")}` : "",
    form.name === undefined ? "" : `With \`--todo N\` it is linked to the todo of this number.`,
    others.length > 0 ? `Also: ${others.map((words) => `\`${prefix}${words}\``).join(", ")}` : "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Named without a value. */
const isSwitch = (schema: FieldSchema | undefined): boolean => schema?.type === "boolean";

/** In the order in which they are given. */
export const positionalFields = (form: Pick<Commandable, "input" | "positional">): string[] => [
  ...formOf(form.input).required,
  ...(form.positional ?? []),
];

const firstWord = (text: string): { text: string; length: number } => {
  const [whole = "", double, single] = /^"([^"]*)"(?=\s|$)|^'([^']*)'(?=\s|$)|^\S+/.exec(text) ?? [];
  return { text: double ?? single ?? whole, length: whole.length };
};

/**
 * Named arguments stand before the others.
 * @param wordsFollow no text may follow that could begin with `--`: what looks like a name is meant as one
 */
function takeNamed(
  form: Commandable,
  line: string,
  wordsFollow: boolean,
): { named: Record<string, unknown>; rest: string } {
  const { fields } = formOf(form.input);
  const names = Object.keys(fields);
  const named: Record<string, unknown> = {};
  let rest = line;
  for (;;) {
    const found = /^--(?:([A-Za-z]\w*)(?:[ \t]+|=|$)|(?=\s|$))/.exec(rest);
    if (!found) return { named, rest };
    const [whole, field] = found;
    if (field === undefined) return { named, rest: rest.slice(whole.length).trim() };
    if (!names.includes(field)) {
      const near = nearest(field, names);
      if (near === undefined && !wordsFollow) return { named, rest };
      const hint =
        near === undefined ? `there are: ${names.map((name) => `--${name}`).join(", ")}` : `did you mean --${near}?`;
      throw new UserError(`There is no --${field}, ${hint} Text that begins so stands behind \`-- \`.`);
    }
    rest = rest.slice(whole.length);
    if (isSwitch(fields[field]) && !whole.endsWith("=")) {
      named[field] = true;
      continue;
    }
    const value = firstWord(rest);
    named[field] = value.text;
    rest = rest.slice(value.length).trim();
  }
}
