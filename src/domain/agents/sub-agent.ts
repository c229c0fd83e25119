import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { problemsOf, section } from "../../base/lib/problems.ts";
import { parseYaml } from "../../base/lib/yaml.ts";
import { type FilePath, formatPath } from "../files/path.ts";

/** Somebody who works for an agent with a prompt and tools of its own. */
export interface SubAgent {
  readonly name: string;
  /** Purpose, as agents are told it. */
  readonly description: string;
  /** Names of its tools. */
  readonly tools: readonly string[];
  /** null: the agent's. */
  readonly model: string | null;
  /** To whom it may delegate in its turn. */
  readonly delegates: readonly string[];
  readonly prompt: string;
}

/** The tool by which work is handed to a sub-agent. */
export const delegateTool = "delegate";

/** Folder of sub-agents that are not shipped. */
export const subAgentsFolder = { share: "system", path: "/subagents" } as const;

const promptMost = 20_000;
const filePattern = /^\/subagents\/([^/]+)\.md$/;
const namePattern = /^[a-z][a-z0-9-]{0,31}$/;
const isName = (value: string): boolean => namePattern.test(value);

const aName = "a name of small letters, digits and hyphens, such as clerk";
const aLine = "one line of text, of 500 characters at most";
const aModel = "the name of a model, such as google/gemini-2.5-flash";
const toolNames = "a list of names of tools, such as FS_Read; delegate is there where `delegates` names anybody";
const schema = section({
  name: z.string(aName).refine(isName, aName),
  description: z.string(aLine).refine((line) => /^\S.{0,499}$/.test(line), aLine),
  tools: z
    .array(z.string(toolNames), toolNames)
    .refine((names) => names.every((name) => /^\w+$/.test(name) && name !== delegateTool), toolNames),
  model: z
    .string(aModel)
    .regex(/^\S{1,255}$/, aModel)
    .nullable()
    .default(null),
  delegates: z.array(z.string(aName).refine(isName, aName), "a list of names of sub-agents").default([]),
});

/** Path of a sub-agent's file within the share `system`. */
export const isSubAgentPath = (path: string): boolean => filePattern.test(path);

/** True if a file defines a sub-agent. */
export const isSubAgentFile = ({ share, path }: FilePath): boolean =>
  share === subAgentsFolder.share && isSubAgentPath(path);

/**
 * Reads the file of a sub-agent: what it is as YAML between two lines of `---`, then its prompt.
 * @throws UserError that lists every mistake
 */
export function parseSubAgent(file: FilePath, text: string): SubAgent {
  const where = formatPath(file);
  const [whole = "", yaml = ""] = /^---[ \t]*\r?\n([\s\S]*?\n)---[ \t]*(?:\r?\n|$)/.exec(text) ?? [];
  if (whole === "") {
    const form = "---\nname: …\ndescription: …\ntools: […]\n---\n\nIts prompt.";
    throw new UserError(`${where} cannot be used: its fields are missing at its beginning. Write:\n\n${form}`);
  }
  const front: unknown = parseYaml(yaml, where).toJS();
  const read = schema.safeParse(front);
  const name = filePattern.exec(file.path)?.[1];
  const prompt = text.slice(whole.length).trim();
  const problems = [
    ...(read.success ? [] : problemsOf(read.error, front).map(({ line }) => line)),
    ...(read.success && read.data.name !== name ? [`name: found "${read.data.name}", and the file is ${name}.md`] : []),
    ...(prompt === "" ? ["it has no prompt: write it below the second ---"] : []),
    ...(prompt.length > promptMost ? [`its prompt is longer than ${promptMost} characters`] : []),
  ];
  if (read.success && problems.length === 0) return { ...read.data, prompt };
  throw new UserError([`${where} cannot be used:`, ...problems.map((line) => `  ${line}`)].join("\n"));
}
