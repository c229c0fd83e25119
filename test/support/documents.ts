import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isSecret } from "../../src/app/config/config.ts";
import { liveSections } from "../../src/app/config/live.ts";
import { configKeys } from "../../src/app/config/schema.ts";
import { agentFields } from "../../src/domain/agents/settings.ts";
import { type AnyCommand, topicOf } from "../../src/engine/control/define-command.ts";
import { commandOf, helpFor } from "../../src/engine/operations/command-line.ts";
import { levelToCommand } from "../../src/engine/operations/gate.ts";
import type { AnyTool } from "../../src/engine/operations/tool.ts";
import { type Topic, topics } from "../../src/engine/operations/topics.ts";

// The documents that are made from definitions. `npm run docs` writes them; `docs.test.ts` holds them.

const project = join(import.meta.dirname, "../..");
const madeFrom = (source: string) =>
  `This page is made from ${source} by \`npm run docs\`. Change the definitions, not the page.`;

type Shape = Readonly<Record<string, z.ZodType>>;

/** The schema within defaults and the like. */
const bare = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodDefault ||
  schema instanceof z.ZodPrefault ||
  schema instanceof z.ZodOptional ||
  schema instanceof z.ZodNullable
    ? bare(schema.unwrap() as z.ZodType)
    : schema;

/** Fields of a section; of a record of sections, with a name before them. */
function fieldsOf(schema: z.ZodType): Shape | undefined {
  const inner = bare(schema);
  if (inner instanceof z.ZodObject) return inner.shape as Shape;
  if (!(inner instanceof z.ZodRecord)) return undefined;
  const fields = fieldsOf(inner.valueType as z.ZodType);
  return fields && Object.fromEntries(Object.entries(fields).map(([key, field]) => [`NAME.${key}`, field]));
}

/** Message that people get when they write something else. */
const expectationOf = (schema: z.ZodType): string =>
  schema.safeParse(Symbol("nothing")).error?.issues[0]?.message ?? "";

const defaultOf = (schema: z.ZodType): string => {
  const { success, data } = schema.safeParse(undefined);
  if (!success) return "must be given";
  return data === undefined ? "none" : `\`${JSON.stringify(data)}\``;
};

const descriptionOf = (path: string, schema: z.ZodType): string => {
  const { description } = schema;
  if (description === undefined) throw new Error(`${path} has no explanation: add .describe("…") to its schema`);
  return description;
};

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
const head = [row("name", "meaning", "expected", "default"), "|---|---|---|---|"];

const rowOf = (path: string, field: string, schema: z.ZodType): string => {
  const file = isSecret(path) ? ` Or \`${field}File\`: path of a file that holds it.` : "";
  const expectation = fieldsOf(schema) && !(bare(schema) instanceof z.ZodRecord) ? "settings" : expectationOf(schema);
  return row(`\`${field}\``, `${descriptionOf(path, schema)}${file}`, expectation, defaultOf(schema));
};

/** A row for each field, and for each field within it. */
const rowsOf = (section: string, fields: Shape): string[] =>
  Object.entries(fields).flatMap(([field, schema]) => {
    const inner = Object.entries(fieldsOf(schema) ?? {}).map(([key, value]) => [`${field}.${key}`, value] as const);
    return [rowOf(`${section}.${field}`, field, schema), ...rowsOf(section, Object.fromEntries(inner))];
  });

function configSection([key, schema]: readonly [string, z.ZodType]): string[] {
  const all = fieldsOf(schema);
  const own = key === "agents" ? all && without(all, Object.keys(agentFields)) : all;
  const isRecord = bare(schema) instanceof z.ZodRecord;
  const facts = [
    ...(own && !isRecord ? [] : [`Expected: ${expectationOf(schema)}.`, `Default: ${defaultOf(schema)}.`]),
    key === "agents"
      ? "`!reload` makes agents that are new in the file."
      : `A change is in force after ${liveSections.includes(key) ? "`!reload`" : "a restart"}.`,
  ];
  const more = key === "agents" ? ["Each agent has all [settings of agents](agents.md), and besides:"] : [];
  return [
    `## ${key}`,
    descriptionOf(key, schema),
    facts.join(" "),
    ...more,
    ...(own ? [[...head, ...rowsOf(key, own)].join("\n")] : []),
  ];
}

const without = (fields: Shape, names: readonly string[]): Shape =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !names.includes(key.replace("NAME.", ""))));

const pageOf = (parts: readonly string[]): string => `${parts.join("\n\n")}\n`;

/** docs/configuration.md */
export const configurationPage = (): string =>
  pageOf([
    "# Configuration",
    "Every key of `config.yaml`. [The file that comes with Clevernet](../config.yaml) is an example with comments; `npm run clevernet -- init --dir DIR` makes one for your homeserver. [Operating](operating.md) explains the rest.",
    [
      "- Paths are relative to the file.",
      `- \`\${NAME}\` in a value is taken from the environment, but not below \`agents\`.`,
      "- Matrix ids stand in quotes, since `@` and `!` mean something in YAML.",
      "- An unknown key or a wrong value is refused at the start; the error names every mistake.",
    ].join("\n"),
    madeFrom("`src/app/config/schema.ts`"),
    ...Object.entries(configKeys).flatMap(configSection),
  ]);

/** docs/agents.md */
export const agentsPage = (): string =>
  pageOf([
    "# Settings of agents",
    "An agent is two files: `agents:/NAME/agent.json` has its settings, `agents:/NAME/persona.md` says who it is. They are made once, from `config.yaml` or by `!agent create`, and kept in the database from then on.",
    "Its owner and admins change them: in a room with the agent, with `!persona` and `!prompt`, or `!write agents:/NAME/agent.json …`; or in the control room, with `!agent set NAME FIELD VALUE`, where `null` as the value puts a field back to its default, unless `null` means something else for it; `models.read.name` is a field within a field. A change is in force when the agent wakes next. A file with mistakes is refused, and each mistake is named. An agent never changes them itself.",
    "Beside them `agents:/NAME/directives/AGENTS.md` may have rules for it, which its owner writes; `SKILLS.md` there lists its tools. Its state in each room is in its [working files](using.md#working-files).",
    madeFrom("`src/domain/agents/settings.ts`"),
    [...head, ...rowsOf("agents", agentFields)].join("\n"),
  ]);

const places: Readonly<Record<AnyCommand["where"], string>> = {
  agent: "in a room, to one agent",
  room: "in a room with agents",
  control: "in the control room",
  anywhere: "in any of these rooms",
};

type Form = AnyCommand | AnyTool;

const isTool = (form: Form): form is AnyTool => "set" in form;

function commandPart(form: Form): string[] {
  if (!isTool(form)) return [whoMay(form.level, places[form.where]), helpFor(form, "!")];
  // Without its name a tool has no line on `--todo`, which the page says once.
  const { name, ...rest } = form;
  const words = name.toLowerCase() === form.command ? [] : [name];
  const more = typeof form.kind === "function" ? "; `operate` where it creates, changes or deletes something" : "";
  const help = helpFor({ ...rest, aliases: [...(form.aliases ?? []), ...words] }, "!");
  return [whoMay(levelToCommand(form), places.agent, more), help];
}

const whoMay = (level: string, place: string, more = ""): string => `Needs \`${level}\`${more}. Given ${place}.`;

const anchorOf = (command: string): string => command.toLowerCase().replaceAll(" ", "-");

/** docs/commands.md */
export function commandsPage(forms: readonly Form[]): string {
  const byTopic = Map.groupBy(
    forms.toSorted((a, b) => commandOf(a).localeCompare(commandOf(b))),
    topicOf,
  );
  const grouped = (Object.keys(topics) as Topic[]).map((topic) => ({ topic, members: byTopic.get(topic) ?? [] }));
  const contents = grouped.map(({ topic, members }) => {
    const links = members.map((form) => `[\`!${commandOf(form)}\`](#${anchorOf(commandOf(form))})`);
    return `- **${topic}** (${topics[topic]}): ${links.join(", ")}`;
  });
  const parts = grouped.flatMap(({ topic, members }) => [
    `## ${topic}: ${topics[topic]}`,
    ...members.flatMap((form) => [`### \`!${commandOf(form)}\``, ...commandPart(form)]),
  ]);
  return pageOf([
    "# Commands",
    "A command is your own message that begins with `!`. `!help` lists those that you may give in a room, `!help COMMAND` explains one. [Using agents](using.md) tells what they are for.",
    [
      "- In a usage line, `<name>` must be given, and `[name]` may be left out.",
      "- Arguments stand in their order. The last one takes everything that follows, so it needs no quotes; the others need them where they hold a space.",
      "- `[--name …]` is an option, and stands before the last argument. `--` ends the options: write it before a text that begins with `--`.",
      "- With several agents in a room, name the one you mean: `!helper status`.",
      "- Every command that an agent can use as a function takes `--todo N`, which links what it does to this todo.",
      "- A command needs a [level](operating.md#permissions): `chat`, `use`, `operate` or `admin`, each including the one before.",
    ].join("\n"),
    madeFrom("`src/edges/commands` and `src/edges/tools`"),
    contents.join("\n"),
    ...parts,
  ]);
}

/** A document whose code blocks with a path behind their language hold this file, as it would stand in `src`. */
export const withExamples = (document: string): string =>
  document.replace(/^```(\w+) (examples\/\S+)\n[\s\S]*?^```$/gm, (_, language: string, path: string) => {
    const text = readFileSync(join(project, path), "utf8").replaceAll('"../../src/', '"../../').trimEnd();
    const fence = "```";
    return `${fence}${language} ${path}\n${text}\n${fence}`;
  });
