import { readdir } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { setsTold, toolSets } from "../../../src/domain/agents/settings.ts";
import type { AnyCommand } from "../../../src/engine/control/define-command.ts";
import { type FieldSchema, formOf, readInput, toldForm } from "../../../src/engine/operations/arguments.ts";
import {
  type Commandable,
  commandOf,
  findForm,
  helpFor,
  readCommandLine,
  usageOf,
  wordsFor,
} from "../../../src/engine/operations/command-line.ts";
import { type AnyTool, operationKinds } from "../../../src/engine/operations/tool.ts";
import { inputOf, readArguments, Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { makeAgent } from "../../support/agents.ts";
import { hostileText } from "../../support/hostile-text.ts";

const modulesIn = async <Module>(name: string): Promise<{ file: string; module: Module }[]> => {
  const folder = new URL(`../../../src/edges/${name}/`, import.meta.url);
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts")).sort();
  return Promise.all(
    files.map(async (file) => ({ file, module: (await import(new URL(file, folder).href)) as Module })),
  );
};
const tools = (await modulesIn<{ tool: AnyTool }>("tools")).map(({ file, module: { tool } }) => {
  return { file, name: tool.name, tool };
});
const commands = (await modulesIn<{ commands: readonly AnyCommand[] }>("commands")).flatMap(({ file, module }) =>
  module.commands.map((command) => ({ file, name: command.command, command })),
);
const forms: readonly Commandable[] = [...commands.map(({ command }) => command), ...tools.map(({ tool }) => tool)];
const toolForms = tools.map(({ name, tool }) => ({ name, form: tool as Commandable }));
const commandForms = commands.map(({ name, command }) => ({ name, form: command as Commandable }));

/** Arguments as a model may write them; `#0` to `#5` stand for the tool's own fields. */
const written = fc.sample(
  fc.oneof(
    fc
      .dictionary(
        fc.oneof(fc.stringMatching(/^#[0-5]$/), fc.constantFrom("__proto__", "constructor", "x")),
        fc.oneof(fc.jsonValue({ maxDepth: 2 }), hostileText, fc.constantFrom("5", "1e999", "constructor", 1e21, -0, 3)),
        { maxKeys: 5 },
      )
      .map((given) => JSON.stringify(given)),
    fc.json({ maxDepth: 2 }),
    hostileText,
  ),
  10_000,
);

/** Lines as people may write them behind a command, in the same way. */
const lines = fc
  .sample(
    fc.array(fc.oneof(hostileText, fc.constantFrom("--#0", "--#1=", "--#2", "--", "--x", '"', "\n", ";", "5", "[1]")), {
      maxLength: 6,
    }),
    2_000,
  )
  .map((words) => words.join(" "));

/** Fields that a model understands by their names and the function's description: each description is paid for in every call. */
const plainNames = new Set([
  "action",
  "content",
  "depth",
  "id",
  "key",
  "limit",
  "line",
  "number",
  "subAgent",
  "surrounding",
  "text",
  "title",
  "url",
]);

describe.each(tools)("$name", ({ file, tool }) => {
  it("has a name that models take, and its file is called after it", () => {
    expect(tool.name).toMatch(/^[A-Za-z][A-Za-z_]{1,48}$/);
    const kebab = tool.name
      .replaceAll("_", "-")
      .replace(/(?<=[a-z])(?=[A-Z])/g, "-")
      .toLowerCase();
    expect(file).toBe(`${kebab}.ts`);
  });

  it("says what it does, of which kind it is and to which set it belongs", () => {
    expect(tool.description).toMatch(/^[A-Z].{15,}\.$/s);
    expect([...operationKinds, "function"]).toContain(typeof tool.kind === "function" ? "function" : tool.kind);
    expect(toolSets).toContain(tool.set);
  });

  it("says it to people, too: not as if they were the agent", () => {
    const speaksToModel = /\byou(?:rs?)?\b/i;
    if (speaksToModel.test(tool.description)) expect(tool.help).toMatch(/^[A-Z].{15,}\.$/s);
    for (const [name, { description, help = description }] of Object.entries(formOf(tool.input).fields)) {
      expect(help, name).toMatch(/\S/);
      expect(help, name).not.toMatch(speaksToModel);
    }
  });

  it("gives the model a schema that every provider takes, with every field described whose name does not say it", () => {
    const { json, fields, required } = formOf(inputOf(tool));
    expect(json).toMatchObject({ type: "object", additionalProperties: false });
    expect(
      Object.keys(json)
        .filter((key) => !["required", "properties"].includes(key))
        .sort(),
    ).toEqual(["additionalProperties", "type"]);
    expect(Object.keys(fields)).toEqual(expect.arrayContaining([...required]));
    // A field that every call may have is no field of a tool's own.
    expect(fields).toHaveProperty("todo");
    expect(tool.input.shape).not.toHaveProperty("todo");
    const told = toldForm(tool.input).properties as Readonly<Record<string, FieldSchema>>;
    expect(Object.keys(told)).toEqual(Object.keys(tool.input.shape));
    for (const [name, schema] of Object.entries(told)) {
      expect(name).toMatch(/^[A-Za-z]\w{0,63}$/);
      // The guide says what a path is.
      if (!tool.paths?.includes(name) && !plainNames.has(name)) expect(schema.description, name).toMatch(/\S/);
      expect(keywordsIn(schema).filter((key) => !keywords.has(key))).toEqual([]);
    }
  });

  it("takes each of its paths without a share, too", () => {
    const { fields } = formOf(inputOf(tool));
    const paths = Object.keys(fields).filter((name) => ["glob", "path", "target"].includes(name));
    expect([...(tool.paths ?? [])].sort()).toEqual(paths.sort());
  });

  it("refuses what it does not know, by its name", () => {
    expect(() => readArguments(tool, JSON.stringify({ ...sample(tool), nonsense: 1 }))).toThrow("nonsense");
  });

  it("refuses an input without what it needs, and values of a wrong type, by the name of the field", () => {
    const { fields, required } = formOf(inputOf(tool));
    for (const field of required) {
      const { [field]: _, ...rest } = sample(tool);
      expect(() => readArguments(tool, JSON.stringify(rest)), field).toThrow(
        new RegExp(`^${field}: missing, expected `, "m"),
      );
    }
    for (const [field, schema] of Object.entries(fields)) {
      for (const value of [...wrong(schema), ...(required.includes(field) ? [null] : [])]) {
        const given = JSON.stringify({ ...sample(tool), [field]: value });
        expect(() => readArguments(tool, given), given).toThrow(new RegExp(`^${field}\\b.*: found .*, expected `, "m"));
      }
    }
  });

  it("reads whatever a model may write, or says what is wrong with it", () => {
    const fields = Object.keys(formOf(inputOf(tool)).fields);
    for (const text of written) {
      const json = text.replace(/#(\d)/g, (_, digit) => fields[Number(digit) % fields.length] ?? "");
      try {
        const { input } = readArguments(tool, json);
        const unknown = Object.keys(input).filter((field) => !Object.hasOwn(tool.input.shape, field));
        if (unknown.length > 0) throw new Error(`unknown: ${unknown.join(", ")}`);
      } catch (error) {
        if (!(error instanceof UserError)) throw new Error(`readArguments fails on ${json}`, { cause: error });
      }
    }
  });
});

describe.each([...toolForms, ...commandForms])("the command of $name", ({ form }) => {
  it("is one word or two, and the only one that is called so", () => {
    for (const words of wordsFor(form)) {
      expect(words).toMatch(/^[A-Za-z][\w-]*( [a-z][a-z-]*)?$/);
      expect(findForm(forms, words)?.form).toBe(form);
      expect(forms.filter((other) => wordsFor(other).some((theirs) => same(theirs, words)))).toEqual([form]);
    }
  });

  it("reads its own examples, and has some where it needs anything", () => {
    if (formOf(form.input).required.length > 0) expect(form.examples).toBeDefined();
    for (const example of form.examples ?? []) {
      const found = findForm(forms, `${commandOf(form)} ${example}`);
      expect(found?.form).toBe(form);
      expect(() => readCommandLine(form, found?.rest ?? "")).not.toThrow();
    }
  });

  it("without arguments runs, or says what is missing", () => {
    const { required } = formOf(form.input);
    const read = () => readCommandLine(form, "");
    if (required.length === 0) expect(read()).toEqual(readInput(form.input, {}));
    for (const field of required) expect(read).toThrow(new RegExp(`^${field}: (missing|found ""), expected `, "m"));
  });

  it("has a help that shows its usage, every field, its examples and its other words", () => {
    const help = helpFor(form, "!");
    expect(help).toContain(`\`${usageOf(form, "!")}\``);
    for (const field of Object.keys(form.input.shape)) expect(help).toMatch(new RegExp(`^- \`${field}\`: \\S`, "m"));
    for (const example of form.examples ?? []) expect(help).toContain(`\`!${commandOf(form)} ${example}\``);
    for (const words of wordsFor(form)) expect(help).toContain(`!${words}`);
  });

  it("reads whatever people may write, or says what is wrong with it", () => {
    const fields = Object.keys(form.input.shape);
    for (const text of lines) {
      const line = text.replace(/#(\d)/g, (_, digit) => fields[Number(digit) % fields.length] ?? "");
      try {
        readCommandLine(form, line);
      } catch (error) {
        if (!(error instanceof UserError)) throw new Error(`readCommandLine fails on ${line}`, { cause: error });
      }
    }
  });

  it("has positional arguments that it knows", () => {
    expect(Object.keys(form.input.shape)).toEqual(expect.arrayContaining([...(form.positional ?? [])]));
  });
});

describe.each(commands)("the command $name", ({ command, file }) => {
  it("has a description, and a file that is called after its first word, or after many of them", () => {
    expect(command.description).toMatch(/^[A-Z].{15,}\.$/s);
    expect(file).toMatch(new RegExp(`^${command.command.split(" ")[0]}s?(-[a-z-]+)?\\.ts$`));
  });
});

it("tools are what this table says: whoever changes it looks at what that means for the gate", async () => {
  const rows = tools.map(({ tool }) => [
    tool.name,
    tool.set,
    byInput(tool.kind),
    tool.isOwn === undefined ? "" : byInput(tool.isOwn),
    tool.sendsTo ? "by input" : "",
    tool.reachesOutside === undefined ? "" : byInput(tool.reachesOutside),
    tool.isRepeatable ? "yes" : "no",
    tool.isImmediate ? "yes" : "",
    tool.runsBeside === undefined ? String(tool.kind === "read") : byInput(tool.runsBeside),
    tool.command === undefined ? "" : `!${tool.command}`,
    (tool.aliases ?? []).map((words) => `!${words}`).join(", "),
  ]);
  const head = [
    "tool",
    "set",
    "kind",
    "own",
    "sends",
    "reaches outside",
    "repeatable",
    "immediate",
    "beside",
    "command",
    "also",
  ];
  const widths = [20, 11, 10, 10, 10, 16, 12, 11, 10, 20];
  const table = [head, ...rows].map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(""));
  await expect(table.map((line) => `${line.trimEnd()}\n`).join("")).toMatchFileSnapshot("contract.txt");
});

it("people are told of those tool sets that hold a tool, and of no others", () => {
  expect([...setsTold].sort()).toEqual([...new Set(tools.map(({ tool }) => tool.set))].sort());
});

it("the examples of !window name windows as they are named", () => {
  const { examples = [] } = tools.find(({ name }) => name === "Window_Action")?.tool ?? {};
  expect(examples.length).toBeGreaterThan(0);
  for (const example of examples) expect(example).toMatch(/^(?:file|page|search|web)_\d+ /);
});

it("models are offered each tool under its name with the agent's suffix", () => {
  const agent = makeAgent("helper", { tools: [...toolSets] });
  const toolbox = new Toolbox(tools.map(({ tool }) => tool));
  const names = toolbox.offer(agent).definitions.map(({ name }) => name);
  expect(new Set(names).size).toBe(tools.filter(({ tool }) => tool.isSpareFor === undefined).length);
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
});

const byInput = (value: unknown): string => (typeof value === "function" ? "by input" : String(value));

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** Keywords that OpenAI, Anthropic and Google all take in the parameters of a function. */
const keywords = new Set(
  "type description enum items properties required additionalProperties minimum maximum minLength maxLength minItems maxItems pattern default".split(
    " ",
  ),
);
const keywordsIn = (schema: FieldSchema): string[] => [
  ...Object.keys(schema),
  ...(schema.items ? keywordsIn(schema.items) : []),
];

/** A valid input: that of the tool's first example. */
const sample = (tool: AnyTool): Record<string, unknown> => readCommandLine(tool, tool.examples?.[0] ?? "");

const wrong = ({ type, enum: words }: FieldSchema): unknown[] => {
  const never = [{}];
  if (words) return [...never, "nonsense", 1];
  if (type === "integer" || type === "number") return [...never, "many", true, [1]];
  if (type === "boolean") return [...never, "perhaps", 1];
  if (type === "array") return [...never, 1, true];
  return [...never, true, ["text"]];
};
