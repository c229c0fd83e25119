import type { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { onlyBlock } from "../../base/lib/fence.ts";
import { nearest, shortenTyped } from "../../base/lib/nearest.ts";
import { describeExpected, type FieldSchema, formOf, readInput } from "./arguments.ts";
import type { Topic } from "./topics.ts";

/** Text that people write after the prefix: a tool's command, or one of the bridge's own. */
export interface Commandable {
  /** The words that call it, one or two. */
  readonly command?: string;
  /** Other words that call it. */
  readonly aliases?: readonly string[];
  /** A tool's name, which calls it as well. */
  readonly name?: string;
  readonly description: string;
  /** Text for people in its place, where `description` speaks to the model. */
  readonly help?: string;
  /** The part of `!help` in which it stands; `basics` if it is not said, `bridge` in the control room. */
  readonly topic?: Topic;
  /** Every field is described. */
  readonly input: z.ZodObject;
  /** Optional fields that are given by position as well, after the required ones. */
  readonly positional?: readonly string[];
  /** No positional value holds a space, so that named ones may stand behind them as well. */
  readonly isNamedLast?: boolean;
  /** The last positional value is a path or a pattern of paths: quotes around it are not part of it. */
  readonly isPathLast?: boolean;
  /** Named values may stand behind the text as well, and quotes around all of it are not part of it. */
  readonly hasNamedBehind?: boolean;
  /** The last positional value is code: of one that is a code block of Markdown, it is what stands in it. */
  readonly isCodeLast?: boolean;
  /** Examples of what may stand behind the command. */
  readonly examples?: readonly string[];
}

/** All words that call it, those that people are told first. */
export const wordsFor = ({ command, aliases = [], name }: Commandable): string[] =>
  [command, ...aliases, name?.toLowerCase() === command ? undefined : name].filter((words) => words !== undefined);

/** Words that people are told to write. */
export const commandOf = (form: Commandable): string => wordsFor(form)[0] ?? "";

/** Tells people in one or two sentences what it is good for. */
export const purposeOf = ({ description, help }: Commandable): string => help ?? description;

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

/** Counts the characters of the line that are these words; 0 if it begins with others. */
const lengthOf = (words: string, line: string): number => {
  const pattern = words.split(" ").join(String.raw`\s+`);
  return new RegExp(`^${pattern}(?=\\s|$)`, "i").exec(line)?.[0].length ?? 0;
};

/**
 * A command's arguments by its input: the required fields by position, the last of which takes the rest of the line, as
 * it is; before it begins, `--name value` for any field. A value with spaces stands in quotes elsewhere; `--` ends the
 * named ones. Values are text: see `readInput`.
 */
export function readCommandLine(form: Commandable, line: string): Record<string, unknown> {
  const places = positionalFields(form);
  const values: Record<string, unknown> = {};
  let left = line.trim();
  let hasEnded = false;
  for (;;) {
    if (!hasEnded) ({ rest: left, hasEnded } = takeNamed(form, left, values));
    const [field, ...behind] = places.filter((place) => !Object.hasOwn(values, place));
    if (field === undefined || left === "") break;
    const takesRest = behind.length === 0 && !form.isNamedLast;
    const word = firstWord(left);
    const isWhole = (form.isPathLast || form.hasNamedBehind) && !hasEnded && word.length === left.length;
    const value = !takesRest || isWhole ? word : restOf(form, left, hasEnded);
    values[field] = (takesRest && form.isCodeLast ? onlyBlock(value.text) : undefined) ?? value.text;
    left = left.slice(value.length).trim();
  }
  if (left !== "") throw new UserError(`"${shortenTyped(left)}" is more than this command takes.`);
  return readInput(form.input, values);
}

/** Writes how a command is typed: `!say [--roomId …] [--final] <content>`. */
export function usageOf(form: Commandable, prefix: string): string {
  const { fields } = formOf(form.input);
  const positional = positionalFields(form);
  const named = Object.keys(fields).filter((field) => !positional.includes(field));
  const flags = named.map((field) => `[--${field}${isSwitch(fields[field]) ? "" : " …"}]`);
  const places = positional.map((field) => (form.positional?.includes(field) ? `[${field}]` : `<${field}>`));
  const words = form.isNamedLast ? [...places, ...flags] : [...flags, ...places];
  return [`${prefix}${commandOf(form)}`, ...words].join(" ");
}

/** Usage with the meaning of each part, examples, and other words for it. */
export function helpFor(form: Commandable, prefix: string): string {
  const described = Object.entries(formOf(form.input).fields).map(([field, schema]) => {
    const { description = "", help = description, default: usual } = schema;
    const facts = [
      ...(schema.type === "string" && !schema.enum ? [] : [describeExpected(schema)]),
      ...(usual === undefined ? [] : [`without it ${usual}`]),
    ];
    return `- \`${field}\`: ${help}${facts.length > 0 ? ` (${facts.join("; ")})` : ""}`;
  });
  const command = `${prefix}${commandOf(form)}`;
  const examples = (form.examples ?? []).map((example) => `\`${command} ${example}\``);
  const others = wordsFor(form).slice(1);
  return [
    `\`${usageOf(form, prefix)}\``,
    purposeOf(form),
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

/** Pairs of quotes; telephones write the curved ones. */
const quoted = /^(?:"([^"]*)"|'([^']*)'|[“„]([^“”]*)[“”]|[‘‚]([^‘’]*)[‘’])(?=\s|$)/;

const firstWord = (line: string): { text: string; length: number } => {
  const found = quoted.exec(line);
  if (found) return { text: found.slice(1).find((text) => text !== undefined) ?? "", length: found[0].length };
  const [whole = ""] = /^\S+/.exec(line) ?? [];
  return { text: whole, length: whole.length };
};

/** The text that the last positional value takes: all of the line, or all before the first named value. */
function restOf(form: Commandable, line: string, hasEnded: boolean): { text: string; length: number } {
  if (!form.hasNamedBehind || hasEnded) return { text: line, length: line.length };
  const names = Object.keys(formOf(form.input).fields);
  const isName = (word: string) => names.includes(word) || nearest(word, names) !== undefined;
  const word = firstWord(line);
  const isQuoted = quoted.test(line);
  for (const found of line.matchAll(/\s+--([A-Za-z][^\s=]*)(?=[\s=]|$)/g)) {
    if (!isName(found[1] ?? "") || (isQuoted && found.index < word.length)) continue;
    const { index: length } = found;
    return { text: isQuoted && word.length === length ? word.text : line.slice(0, length), length };
  }
  return { text: line, length: line.length };
}

/** Moves the named arguments with which the line begins to `values`; `hasEnded`: no more of them may follow. */
function takeNamed(
  form: Commandable,
  line: string,
  values: Record<string, unknown>,
): { readonly rest: string; readonly hasEnded: boolean } {
  const { fields } = formOf(form.input);
  const names = Object.keys(fields);
  let rest = line;
  for (;;) {
    const found = /^--(?:([A-Za-z][^\s=]*)(?:\s+|=|$)|(?=\s|$))/.exec(rest);
    if (!found) return { rest, hasEnded: false };
    const [whole, field] = found;
    rest = rest.slice(whole.length);
    if (field === undefined) return { rest: rest.trim(), hasEnded: true };
    if (!names.includes(field)) throw new UserError(unknownName(field, names));
    if (Object.hasOwn(values, field)) throw new UserError(`--${field} is given twice. ${textBehind}`);
    if (isSwitch(fields[field]) && !whole.endsWith("=")) {
      values[field] = true;
      continue;
    }
    const value = firstWord(rest);
    values[field] = value.text;
    rest = rest.slice(value.length).trim();
  }
}

const textBehind = "Text that begins so stands behind `-- `.";

function unknownName(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  const all = names.map((known) => `--${known}`).join(", ");
  const hint = near === undefined ? `there are: ${all || "none"}` : `did you mean --${near}?`;
  return `There is no --${shortenTyped(name)}, ${hint} ${textBehind}`;
}
