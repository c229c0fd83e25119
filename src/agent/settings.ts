import { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { problemsOf, section } from "../lib/problems.ts";
import { formatPath, parsePath } from "../vfs/path.ts";

/** Which kinds of operations run without asking: each mode includes those before it. */
export const modes = ["none", "read", "create", "update", "delete"] as const;
export type Mode = (typeof modes)[number];

/** Toolboxes of sub-agents: an agent that is not given one reaches its tools by delegation. */
export const subAgentSets = ["planner", "librarian", "secretary", "architect", "dba", "artist"] as const;

/** The toolboxes that an agent can be given. */
export const toolSets = ["core", "memory", "sandbox", "web", ...subAgentSets] as const;
export type ToolSet = (typeof toolSets)[number];

const agentFlags = ["PreventParallelFunctionCalls", "PreventFunctionCallsWithoutThoughts"] as const;
type AgentFlag = (typeof agentFlags)[number];

/** Text that the database can hold: without NUL and lone surrogates. */
export const text = (expected: string) =>
  z.string(expected).refine((value) => value.isWellFormed() && !value.includes("\0"), expected);

const name = (expected: string) =>
  text(expected).refine((value) => value.trim() !== "" && value.length <= 255, expected);

const numberFrom = (min: number, max: number) => {
  const expected = `a number from ${min} to ${max}`;
  return z.number(expected).min(min, expected).max(max, expected);
};

const wholeFrom = (min: number, max: number) => {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
};

const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, `one of ${words.join(", ")}`);

const yesOrNo = z.boolean("true or false");

/** Shown to everybody whom the agent talks to: what is behind walls elsewhere cannot be named. */
const filePath = () => {
  const expected = "a file of its own or of all agents as agents:/PATH, such as agents:/helper/persona.md";
  return text(expected).refine((value) => {
    try {
      const file = parsePath(value);
      return file.share === "agents" && file.path !== "/" && formatPath(file) === value;
    } catch {
      return false;
    }
  }, expected);
};

const flagNames = `${agentFlags.join(", ")}: none, one or several, with commas between`;
const isFlag = (word: string): word is AgentFlag => agentFlags.some((flag) => flag === word);
const wordsOf = (list: string): string[] =>
  list
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
const flags = z
  .string(flagNames)
  .refine((list) => wordsOf(list).every(isFlag), flagNames)
  .transform((list) => wordsOf(list).filter(isFlag));

const isTimeZone = (zone: string): boolean => {
  try {
    return /^[A-Za-z]/.test(zone) && new Intl.DateTimeFormat("en", { timeZone: zone }) instanceof Intl.DateTimeFormat;
  } catch {
    return false;
  }
};

const seconds = "a whole number of seconds, from 60 to 31536000 (a year), or null for never";
const yearSeconds = 31_536_000;
const prompt = "text, or null for none";
const subAgentNames = "a list of names of sub-agents, such as planner and clerk, or null for all";
const timeZone = "the name of a time zone, such as Europe/Berlin or UTC";
const avatar = "an uploaded image as mxc://SERVER/ID, or null for none";

/** What may be spent on one day (UTC); what is not said has no limit. */
export const budgetLimit = () =>
  section({
    tokens: z.int("a whole number of tokens, 0 or more").min(0, "a whole number of tokens, 0 or more").optional(),
    usd: z.number("US dollars, 0 or more").min(0, "US dollars, 0 or more").optional(),
  });

/** The fields of `agent.json`, each with its default. */
export const agentFields = {
  /** null: the agent's name. */
  displayName: name("a name of 1 to 255 characters, or null for the agent's own").nullable().default(null),
  avatar: text(avatar)
    .refine((value) => /^mxc:\/\/[^/\s]+\/[\w-]+$/.test(value), avatar)
    .nullable()
    .default(null),
  /** null: the model of the configuration file. */
  model: name("the model's name, such as anthropic/claude-sonnet-4.5, or null for the one in config.yaml")
    .nullable()
    .default(null),
  /** The fast model that reads long texts for it; null: the one of the configuration file, or else its own. */
  submodel: name("the name of a fast model, such as google/gemini-2.5-flash, or null").nullable().default(null),
  systemPrompt: text("text").default("You are a helpful assistant."),
  /** Seconds; null: never. */
  wakeUpTimerSeconds: z.int(seconds).min(60, seconds).max(yearSeconds, seconds).nullable().default(3600),
  autoJoinInvites: yesOrNo.default(true),
  temperature: numberFrom(0, 2).default(1),
  /** null: `agents:/NAME/persona.md`. */
  personaFile: filePath().nullable().default(null),
  scratchPadFile: filePath().nullable().default(null),
  /** Characters of system and user message together. */
  approxContextCharsMax: wholeFrom(8_000, 10_000_000).default(50_000),
  /** Lines that a window shows, characters that it shows at most, turns after which it closes by itself. */
  windowLines: wholeFrom(1, 1_000).default(20),
  windowChars: wholeFrom(500, 1_000_000).default(8_000),
  windowTurns: wholeFrom(1, 100).default(2),
  /** The last thing in the user message. */
  postPrompt: text(prompt).nullable().default(null),
  agentFlags: flags.default([]),
  reloadEphemeris: yesOrNo.default(true),
  mode: oneOf(modes).default("create"),
  tools: z.array(oneOf(toolSets), `a list of ${toolSets.join(", ")}`).default(["core", "memory", "sandbox", "web"]),
  /** Those that it may delegate to; null: all that there are. */
  subAgents: z.array(name(subAgentNames), subAgentNames).nullable().default(null),
  /** The order in which the agent's world is written down. */
  layout: oneOf(["cacheable", "seed"]).default("cacheable"),
  /** Whether the model is shown images; one that turns out not to see is sent none. */
  images: yesOrNo.default(true),
  /** How people hear the agent: through `SendMessage` alone, or by the last text of a turn. */
  answer: oneOf(["tool", "text"]).default("tool"),
  /** Whether people see an answer that is such a text while the model writes it. */
  streaming: yesOrNo.default(false),
  /** Which messages it answers: `auto` in company only those meant for it, and all when it is alone with one person. */
  reply: oneOf(["auto", "mention", "always"]).default("auto"),
  /** What the agent may spend on one day (UTC), beside the operator's budgets. */
  budget: budgetLimit().nullable().default(null),
  maxConcurrentTurns: wholeFrom(1, 32).default(4),
  /** Steps of one turn. */
  maxIterations: wholeFrom(1, 25).default(10),
  timeZone: text(timeZone).refine(isTimeZone, timeZone).default("UTC"),
};

const noLogin = "is not used: agents are users of the application service and have no password; take it out";

/** Keys of the source document that have no place here, with the reason. */
export const refusedAgentFields = {
  loginUsername: `loginUsername ${noLogin}`,
  loginPassword: `loginPassword ${noLogin}`,
};

const schema = section(agentFields, refusedAgentFields);

/** Everything that configures an agent, complete. */
export type AgentSettings = Readonly<z.output<typeof schema>>;

/**
 * Reads the content of an `agent.json`, filling in defaults.
 * @param where names the source to people, such as `agents:/helper/agent.json`
 * @throws UserError that lists every mistake
 */
export const parseAgentSettings = (json: unknown, where: string): AgentSettings => {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new UserError(
    [`${where} cannot be used:`, ...problemsOf(result.error, json).map(({ line }) => `  ${line}`)].join("\n"),
  );
};
