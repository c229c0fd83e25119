import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { UserError } from "../../../src/base/lib/errors.ts";
import {
  type Commandable,
  findForm,
  helpFor,
  readCommandLine,
  usageOf,
} from "../../../src/engine/operations/command-line.ts";
import { defineTool } from "../../../src/engine/operations/tool.ts";
import { hostileText } from "../../support/hostile-text.ts";

const remember = defineTool({
  name: "Remember",
  set: "core",
  command: "remember",
  aliases: ["keep", "note down"],
  examples: ["5 Mia likes tea"],
  description: "Stores a fact.",
  kind: "create",
  isRepeatable: true,
  input: z.object({
    topic: z.string().min(1).describe("What it is about").optional(),
    loud: z.boolean().describe("Says so in the room").optional(),
    importance: z.coerce.number().int().min(1).max(5).describe("1 trivial, 5 vital"),
    fact: z.string().min(1).describe("The fact"),
  }),
  run: async () => ({ result: "" }),
});
const bare = defineTool({
  ...remember,
  name: "Bare",
  command: "bare",
  aliases: [],
  examples: [],
  input: z.object({}),
});
const read = (line: string) => readCommandLine(remember, line);

describe("a command line whose positional values hold no spaces", () => {
  const create = {
    command: "create",
    description: "Makes something.",
    input: z.object({
      name: z.string().describe("Its name"),
      model: z.string().describe("Its model").optional(),
      erase: z.boolean().describe("Whether").optional(),
      number: z.string().describe("Which").optional(),
    }),
    positional: ["number"],
    isNamedLast: true,
  };

  it.each([
    ["named behind", 'x --model "a b" --erase', { name: "x", model: "a b", erase: true }],
    ["named before and behind", "--model a x 3 --erase", { name: "x", model: "a", number: "3", erase: true }],
    ["named between", "x --model a 3", { name: "x", model: "a", number: "3" }],
    ["optional by position", "x 3", { name: "x", number: "3" }],
  ])("is read: %s", (_how, line, values) => {
    expect(readCommandLine(create, line)).toEqual(values);
  });

  it("has a usage with the names last, and says what is too much", () => {
    expect(usageOf(create, "!")).toBe("!create <name> [number] [--model …] [--erase]");
    expect(() => readCommandLine(create, "x 3 4")).toThrow('"4" is more than this command takes.');
  });
});

describe("a command line", () => {
  it.each([
    ["by position, the last takes the rest", "5 Mia likes  tea", { importance: 5, fact: "Mia likes  tea" }],
    ["named before the text", "--topic tea 5 Mia", { topic: "tea", importance: 5, fact: "Mia" }],
    ["named with =", "--topic=tea 5 Mia", { topic: "tea", importance: 5, fact: "Mia" }],
    ["named with single quotes", "--topic 'green tea' 5 Mia", { topic: "green tea", importance: 5, fact: "Mia" }],
    ["named with quotes", '--topic "green tea" 5 Mia', { topic: "green tea", importance: 5, fact: "Mia" }],
    ["named with curved quotes", "--topic “green tea” 5 Mia", { topic: "green tea", importance: 5, fact: "Mia" }],
    [
      "named with curved single quotes",
      "--topic ‘green tea’ 5 Mia",
      { topic: "green tea", importance: 5, fact: "Mia" },
    ],
    ["single quotes in the text stay", "5 'Mia likes tea'", { importance: 5, fact: "'Mia likes tea'" }],
    ["a switch", "--loud 5 Mia", { loud: true, importance: 5, fact: "Mia" }],
    ["a switch with a value", "--loud=no 5 Mia", { loud: false, importance: 5, fact: "Mia" }],
    ["a word in quotes", '"5" Mia', { importance: 5, fact: "Mia" }],
    ["a text behind --", "--importance 5 -- --topic is a word", { importance: 5, fact: "--topic is a word" }],
    ["everything named", "--importance 5 --fact tea", { importance: 5, fact: "tea" }],
    [
      "a required one named, the rest by position",
      "--importance 5 Mia likes tea",
      { importance: 5, fact: "Mia likes tea" },
    ],
    ["quotes in the text stay", '5 "Mia" likes', { importance: 5, fact: '"Mia" likes' }],
    ["several lines", "5 one\ntwo\n--topic three", { importance: 5, fact: "one\ntwo\n--topic three" }],
    ["named behind a positional one", "5 --topic tea Mia", { topic: "tea", importance: 5, fact: "Mia" }],
    ["a switch on the line before the text", "5 --loud\nMia", { loud: true, importance: 5, fact: "Mia" }],
    ["a text that begins with two hyphens", "5 -- --loud Mia", { importance: 5, fact: "--loud Mia" }],
    ["-- before all of them", "-- 5 --loud Mia", { importance: 5, fact: "--loud Mia" }],
    ["what looks like a name in the text", "5 Mia --loud --", { importance: 5, fact: "Mia --loud --" }],
    ["hyphens that are no name", "5 --- Mia --> tea", { importance: 5, fact: "--- Mia --> tea" }],
    ["the last one named behind the others", "5 --fact Mia", { importance: 5, fact: "Mia" }],
    ["space around", "  5   Mia  ", { importance: 5, fact: "Mia" }],
  ])("%s", (_what, line, values) => {
    expect(read(line)).toEqual(values);
  });

  it.each([
    ["nothing", "", "importance"],
    ["too few", "5", "fact"],
    ["a value out of range", "9 Mia", "importance"],
    ["no number", "five Mia", "importance"],
    ["a name without a value", "5 Mia --topic", undefined],
    ["an empty named value", '--topic "" 5 Mia', "topic"],
    ["a name of every object", "--constructor 5 Mia", "There is no --constructor, there are: --topic, --loud"],
    ["an unknown name before the text", "5 --verbose is a flag", "There is no --verbose, there are: --topic, --loud"],
    ["an unknown name with hyphens", "5 --dry-run Mia", "There is no --dry-run"],
    ["a name with a colon", "5 --topic: tea Mia", "There is no --topic:, did you mean --topic?"],
    ["a name given twice", "--topic a 5 --topic b Mia", "--topic is given twice."],
    ["a name of what was given by position", "5 --importance 4 Mia", "--importance is given twice."],
    ["a mistyped name", "--topc tea 5 Mia", "There is no --topc, did you mean --topic?"],
    ["a mistyped name behind a right one", "--loud --tpoic tea 5 Mia", "did you mean --topic?"],
    ["a value of the wrong kind", "soon Mia", 'importance: found "soon", expected a whole number from 1 to 5'],
    ["what is missing", "5", "fact: missing, expected a text: The fact"],
  ])("%s", (_what, line, wrong) => {
    if (wrong === undefined) return expect(read(line)).toMatchObject({ fact: "Mia --topic" });
    expect(() => read(line)).toThrow(UserError);
    return expect(() => read(line)).toThrow(wrong);
  });

  it("too much", () => {
    expect(() => readCommandLine(bare, "something more")).toThrow(
      new UserError('"something more" is more than this command takes.'),
    );
    expect(readCommandLine(bare, " ")).toEqual({});
  });

  it("gives values or a UserError, whatever is written", () => {
    const word = fc.oneof(
      hostileText,
      fc.constantFrom("--topic", "--loud", "--topic=", "5", '"', " ", "\n", "--__proto__ x"),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), fc.constantFrom(remember, bare), (words, tool) => {
        try {
          const values = readCommandLine(tool, words.join(" "));
          expect(Object.keys(tool.input.shape)).toEqual(expect.arrayContaining(Object.keys(values)));
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it("any text arrives whole as the last argument, without the space around it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        fc.pre(text.trim() !== "");
        expect(read(`5 -- ${text}`)).toEqual({ importance: 5, fact: text.trim() });
      }),
    );
  });
});

it.each([
  ["```\necho hello\n```", "echo hello"],
  ["```bash\necho 1\n\necho 2\n```\n", "echo 1\n\necho 2"],
  ["~~~~\necho '```'\n~~~~", "echo '```'"],
  ["```\na\n```\n```\nb\n```", "```\na\n```\n```\nb\n```"],
  ["```\na\n```\nb", "```\na\n```\nb"],
  ["cat <<'E'\n```\na\n```\nE", "cat <<'E'\n```\na\n```\nE"],
  ["```", "```"],
  ["echo `date`", "echo `date`"],
])("code at the end of a command line is what stands in its block: %j", (line, code) => {
  const run = { command: "run", description: "", input: z.object({ code: z.string() }), isCodeLast: true };
  expect(readCommandLine(run, line)).toEqual({ code });
});

describe("a path at the end of a command line", () => {
  const open = { command: "open", description: "", input: z.object({ path: z.string() }), isPathLast: true };

  it.each([
    ["rooms:/a b.md", "rooms:/a b.md"],
    ["'rooms:/a b.md'", "rooms:/a b.md"],
    ['"rooms:/a b.md"', "rooms:/a b.md"],
    ["“rooms:/a b.md”", "rooms:/a b.md"],
    ["rooms:/it's.md", "rooms:/it's.md"],
    ["'a' and 'b'", "'a' and 'b'"],
    ["-- 'a'", "'a'"],
  ])("%s", (line, path) => expect(readCommandLine(open, line)).toEqual({ path }));
});

describe("a command line with named values behind its text", () => {
  const find = {
    command: "find",
    description: "",
    input: z.object({
      query: z.string(),
      user: z.string().optional(),
      loud: z.boolean().optional(),
    }),
    hasNamedBehind: true,
  };

  it.each([
    ["the offer", { query: "the offer" }],
    ["the offer --user @bob:test --loud", { query: "the offer", user: "@bob:test", loud: true }],
    ["the offer --user=@bob:test", { query: "the offer", user: "@bob:test" }],
    ['"the offer" --user "Bob B"', { query: "the offer", user: "Bob B" }],
    ["--loud the offer --user @bob:test", { query: "the offer", user: "@bob:test", loud: true }],
    ["“the --user offer” --loud", { query: "the --user offer", loud: true }],
    ['"the offer"', { query: "the offer" }],
    ['""', { query: "" }],
    ['"the" and "offer"', { query: '"the" and "offer"' }],
    ['"the" offer --loud', { query: '"the" offer', loud: true }],
    ["git commit --amend -- now", { query: "git commit --amend -- now" }],
    ["the key -- the blue one --> here", { query: "the key -- the blue one --> here" }],
    ["-- the offer --user @bob:test", { query: "the offer --user @bob:test" }],
    ['-- "the offer"', { query: '"the offer"' }],
    ["one\ntwo --loud", { query: "one\ntwo", loud: true }],
  ])("is read: %s", (line, values) => expect(readCommandLine(find, line)).toEqual(values));

  it.each([
    ["the offer --usr @bob:test", "There is no --usr, did you mean --user?"],
    ["the offer --user @bob:test more", '"more" is more than this command takes.'],
    ["--loud the offer --loud", "--loud is given twice."],
  ])("is refused: %s", (line, mistake) => expect(() => readCommandLine(find, line)).toThrow(mistake));
});

describe("the command that a line begins with", () => {
  const form = (command: string, more: Partial<Commandable> = {}): Commandable => {
    return { command, description: "", input: z.object({}), ...more };
  };
  const todo = form("todo", { aliases: ["todo list"] });
  const add = form("todo add", { input: z.object({ name: z.string() }) });
  const forms = [todo, add, remember, bare];

  it.each<[string, Commandable, string]>([
    ["todo", todo, ""],
    ["todo list", todo, ""],
    ["Todo  Add milk", add, "milk"],
    ["remember 5 x", remember, "5 x"],
    ["REMEMBER 5 x", remember, "5 x"],
    ["note\tdown 5 x", remember, "5 x"],
    ["bare too much", bare, "too much"],
  ])("%s", (line, found, rest) => {
    expect(findForm(forms, line)).toEqual({ form: found, rest });
  });

  it.each(["", "tod", "todo lsit", "todoadd", "note", "remembering x"])("is none for %j", (line) => {
    expect(findForm(forms, line)).toBeUndefined();
  });
});

it("usage names switches and options in brackets, then what is required", () => {
  expect(usageOf(remember, "!")).toBe("!remember [--topic …] [--loud] <importance> <fact>");
  expect(usageOf(bare, "!")).toBe("!bare");
});

it("help speaks to people where the description speaks to the model", () => {
  const help = helpFor({ ...remember, help: "Has the agent keep a fact." }, "!");
  expect(help).toContain("Has the agent keep a fact.");
  expect(help).not.toContain(remember.description);
});

it("help shows the usage, the description and every field", () => {
  const help = helpFor(remember, "!");
  for (const text of [
    usageOf(remember, "!"),
    "Stores a fact.",
    "`importance`: 1 trivial, 5 vital (a whole number from 1 to 5)",
    "`loud`: Says so in the room (true or false)",
    "For example: `!remember 5 Mia likes tea`",
    "Also: `!keep`, `!note down`",
    "`topic`: What it is about",
  ])
    expect(help).toContain(text);
});
