import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { problemsOf, section } from "../../base/lib/problems.ts";
import { isReachEntry, reachEntries } from "../../base/lib/reach-entry.ts";
import { formatPath, parsePath } from "../files/path.ts";
import { modelsSection, temperature } from "./models.ts";

/** Kinds of operations that run without asking: each mode includes those before it. */
export const modes = ["none", "read", "create", "update", "delete"] as const;
export type Mode = (typeof modes)[number];

/** Toolboxes of sub-agents: an agent that is not given one reaches its tools by delegation. */
export const subAgentSets = ["planner", "librarian", "secretary", "architect", "dba", "artist"] as const;

/** The toolboxes that an agent can be given. */
export const toolSets = ["core", "memory", "sandbox", "web", ...subAgentSets] as const;
export type ToolSet = (typeof toolSets)[number];

/** Sets that people are told of: the others are taken, and hold no tool yet. */
export const setsTold = ["core", "memory", "sandbox", "web", "planner", "librarian"] as const;

const agentFlags = ["PreventParallelFunctionCalls", "PreventFunctionCallsWithoutThoughts"] as const;
type AgentFlag = (typeof agentFlags)[number];

/** Text that the database can hold: without NUL and lone surrogates. */
export const text = (expected: string) =>
  z.string(expected).refine((value) => value.isWellFormed() && !value.includes("\0"), expected);

const name = (expected: string) =>
  text(expected).refine((value) => value.trim() !== "" && value.length <= 255, expected);

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
const followUpMost = 86_400;
const followUp = `a whole number of seconds, from 60 to ${followUpMost} (a day), or null for never`;
const idleSeconds = `a whole number of seconds, from 600 to ${yearSeconds} (a year)`;
const prompt = "text, or null for none";
const subAgentNames = "a list of names of sub-agents, such as planner and clerk, or null for all";
const serverNames = "a list of servers of `mcp` in config.yaml, such as wiki";
const timeZone = "the name of a time zone, such as Europe/Berlin or UTC";
const avatar = "an uploaded image as mxc://SERVER/ID, or null for none";

/** Limit for one day (UTC); a field that is missing sets no limit. */
export const budgetLimit = () =>
  section({
    tokens: z
      .int("a whole number of tokens, 0 or more")
      .min(0, "a whole number of tokens, 0 or more")
      .optional()
      .describe("Tokens of prompts and answers."),
    usd: z.number("US dollars, 0 or more").min(0, "US dollars, 0 or more").optional().describe("US dollars."),
  });

/** The fields of `agent.json`, each with its default and its explanation for people (docs/agents.md). */
export const agentFields = {
  displayName: name("a name of 1 to 255 characters, or null for the agent's own")
    .nullable()
    .default(null)
    .describe("Name that people see in their clients. Without one: the agent's name."),
  avatar: text(avatar)
    .refine((value) => /^mxc:\/\/[^/\s]+\/[\w-]+$/.test(value), avatar)
    .nullable()
    .default(null)
    .describe("Picture of its profile: an image that was uploaded to a homeserver."),
  model: name("the model's name, such as anthropic/claude-sonnet-4.5, or null for the one in config.yaml")
    .nullable()
    .default(null)
    .describe("Language model with which it thinks. Without one: `model.name` of config.yaml."),
  models: modelsSection
    .default({})
    .describe(
      "Models for kinds of tasks, and what is set of them. What is not set of a kind is as config.yaml has it.",
    ),
  systemPrompt: text("text").default("You are a helpful assistant.").describe("First thing that the model reads."),
  wakeUpTimerSeconds: z
    .int(seconds)
    .min(60, seconds)
    .max(yearSeconds, seconds)
    .nullable()
    .default(3600)
    .describe("After so many seconds without a turn it wakes by itself, at home. `null`: never."),
  followUpAfterSeconds: z
    .int(followUp)
    .min(60, followUp)
    .max(followUpMost, followUp)
    .nullable()
    .default(null)
    .describe(
      "After so many seconds of silence in a room where it has left something open (a question, something that it said it would do, a todo), it wakes there and decides whether to say something. While nobody answers, it wakes again after twice as long, until that is more than a day. `!quiet` ends it. `null`: never.",
    ),
  defaultMode: section({
    afterSeconds: z
      .int(idleSeconds)
      .min(600, idleSeconds)
      .max(yearSeconds, idleSeconds)
      .default(21_600)
      .describe("Seconds without anything new in a conversation before it begins."),
    budget: budgetLimit()
      .default({ tokens: 100_000 })
      .describe("Most that it may spend on it on one day (UTC), within the other budgets."),
  })
    .nullable()
    .default(null)
    .describe(
      "Where nothing has happened for long, it wakes once to tidy what it keeps of the conversation: facts, todos, its status. It then has no other tools and says nothing to anybody; it thinks with `models.read`, where that is set. `{}` takes the defaults. `null`: never.",
    ),
  autoJoinInvites: yesOrNo.default(true).describe("Accepts invitations of people who have the right to `chat`."),
  temperature: temperature()
    .default(1)
    .describe(
      "How freely the model chooses its words: 0 is the strictest. Some models ignore it. `null`: nothing is sent, and the provider's own holds.",
    ),
  personaFile: filePath()
    .nullable()
    .default(null)
    .describe("File that says who it is, shown in every call. Without one: `agents:/NAME/persona.md`."),
  scratchPadFile: filePath()
    .nullable()
    .default(null)
    .describe(
      "File of its own notes. It is shown only where everybody may read the agent's home; the agent writes it for its owner, in every mode and in every room.",
    ),
  approxContextCharsMax: wholeFrom(8_000, 10_000_000)
    .default(50_000)
    .describe(
      "Most characters that the model is shown in one call, without the descriptions of its functions. It is never exceeded, and the prompt says where something was cut.",
    ),
  windowLines: wholeFrom(1, 1_000).default(20).describe("Lines that a window shows at once."),
  windowChars: wholeFrom(500, 1_000_000).default(8_000).describe("Most characters that a window shows at once."),
  windowTurns: wholeFrom(1, 100)
    .default(2)
    .describe("A window closes by itself after so many turns in which nobody used it. A pinned one stays."),
  postPrompt: text(prompt).nullable().default(null).describe("Last thing that the model reads."),
  agentFlags: flags
    .default([])
    .describe(
      "Restricts the model: `PreventParallelFunctionCalls` allows one call in a step, `PreventFunctionCallsWithoutThoughts` refuses calls without a text that says why.",
    ),
  reloadEphemeris: yesOrNo
    .default(true)
    .describe("Remembers, after a start of the bridge, its thoughts and calls of before."),
  mode: oneOf(modes)
    .default("create")
    .describe(
      "Kinds of operations that it carries out without asking; each includes those before it. A room can be stricter (`!mode`).",
    ),
  tools: z
    .array(z.enum(toolSets, `one of ${setsTold.join(", ")}`), `a list of ${setsTold.join(", ")}`)
    .default(["core", "memory", "sandbox", "web"])
    .describe("Sets of tools that it has."),
  mcp: z
    .array(name(serverNames), serverNames)
    .default([])
    .describe(
      "Servers whose tools it has, by their names in `mcp` of config.yaml. The tools are called `SERVER__TOOL`; its sub-agents do not have them.",
    ),
  subAgents: z
    .array(name(subAgentNames), subAgentNames)
    .nullable()
    .default(null)
    .describe("Sub-agents to whom it may delegate. `null`: all that there are; an empty list: none."),
  network: z
    .array(z.string(reachEntries).trim().toLowerCase().refine(isReachEntry, reachEntries), reachEntries)
    .nullable()
    .default(null)
    .describe(
      "Hosts to which its computers may connect, of those that `sandbox.network` of config.yaml allows: it can only allow fewer. `null`: all of them; an empty list: none.",
    ),
  layout: oneOf(["cacheable", "seed"])
    .default("cacheable")
    .describe(
      "Order in which its world is written down. `cacheable` puts first what does not change, and appends the steps of a turn, so that providers read only the end of each prompt anew (about an eighth of it in a long conversation). `seed` writes everything anew for each step.",
    ),
  images: yesOrNo
    .default(true)
    .describe("Shows the model images that people send. A model that turns out not to see is told of them instead."),
  answer: oneOf(["tool", "text"])
    .default("tool")
    .describe(
      "How people hear it. `tool`: through `SendMessage` alone, so `tools` must hold `core`; `text`: the last text of a turn is its answer.",
    ),
  streaming: yesOrNo
    .default(false)
    .describe(
      "With `answer: text`: people see an answer while the model writes it, as a notice that is edited and then removed; the answer itself is a message of its own, which alone notifies. Clients that know no edits show each version. Not for a model whose server leaves out the `<think>` before its thoughts: people would see them for a moment.",
    ),
  reply: oneOf(["auto", "mention", "always"])
    .default("auto")
    .describe(
      "Messages that it answers. `auto`: all when it is alone with one person, in company those that are meant for it; `mention`: only those that mention it, begin with its name or reply to it; `always`: all.",
    ),
  budget: budgetLimit()
    .nullable()
    .default(null)
    .describe(
      'Most that it may spend on one day (UTC), such as `{ "tokens": 1000000, "usd": 2 }`, beside the budgets of config.yaml.',
    ),
  maxConcurrentTurns: wholeFrom(1, 32).default(4).describe("Conversations in which it works at the same time."),
  maxIterations: wholeFrom(1, 25)
    .nullable()
    .default(null)
    .describe(
      "Most steps of one turn. Each is one call of the model. `null`: 10, and 25 where it can run commands in a sandbox.",
    ),
  timeZone: text(timeZone)
    .refine(isTimeZone, timeZone)
    .default("UTC")
    .describe("Time zone of its clock and of its schedules."),
};

const noLogin = "is not used: agents are users of the application service and have no password; take it out";

/** Keys of the source document that have no place here, with the reason. */
export const refusedAgentFields = {
  loginUsername: `loginUsername ${noLogin}`,
  loginPassword: `loginPassword ${noLogin}`,
};

/** Refuses settings with which nobody would ever hear the agent. */
export const refuseMute = (
  { answer, tools }: { readonly answer: "tool" | "text"; readonly tools: readonly ToolSet[] },
  context: z.RefinementCtx,
): void => {
  if (answer === "text" || tools.includes("core")) return;
  const message =
    "core among them: with answer: tool the agent speaks by its function SendMessage alone, which is in that set. Add core, or set answer to text";
  context.addIssue({ code: "custom", path: ["tools"], message });
};

const schema = section(agentFields, refusedAgentFields).superRefine(refuseMute);

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
