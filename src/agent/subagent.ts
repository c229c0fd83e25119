import { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { problemsOf, section } from "../lib/problems.ts";
import { parseYaml } from "../lib/yaml.ts";
import { type FilePath, formatPath, parsePath } from "../vfs/path.ts";
import type { Store } from "../vfs/store.ts";
import type { Agent } from "./agent.ts";
import { subAgentSets } from "./settings.ts";
import type { Toolbox } from "./toolbox.ts";

/** Somebody who works for an agent with a prompt and tools of its own. */
export interface SubAgent {
  readonly name: string;
  /** What it is for, as agents are told. */
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

/** Where sub-agents are looked for that are not shipped. */
export const subAgentsFolder = { share: "system", path: "/subagents" } as const;

const filesMost = 1_000;
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

/** Whether a file defines a sub-agent. */
export const isSubAgentFile = ({ share, path }: FilePath): boolean => share === "system" && filePattern.test(path);

/**
 * Reads the file of a sub-agent: what it is as YAML between two lines of `---`, then its prompt.
 * @throws UserError that lists every mistake
 */
export function parseSubAgent(file: FilePath, text: string): SubAgent {
  const where = formatPath(file);
  const [whole = "", yaml = ""] = /^---[ \t]*\r?\n([\s\S]*?\n)---[ \t]*(?:\r?\n|$)/.exec(text) ?? [];
  if (whole === "") {
    const form = "---\nname: …\ndescription: …\ntools: […]\n---\n\nIts prompt.";
    throw new UserError(`${where} cannot be used: it does not begin with what the sub-agent is. Write:\n\n${form}`);
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

/** Sub-agents that are shipped, and what admins laid over them or put beside them. */
export class SubAgents {
  readonly #shipped: ReadonlyMap<string, string>;
  readonly #toolbox: Toolbox;
  readonly #store: Store | undefined;
  /** What was read, by path and text. */
  readonly #read = new Map<string, SubAgent | undefined>();

  /** `shipped`: texts by their paths in `system:`, whose files are in `store`. */
  constructor(shipped: ReadonlyMap<string, string>, toolbox: Toolbox, store: Store | undefined) {
    this.#shipped = new Map([...shipped].filter(([path]) => filePattern.test(path)));
    this.#toolbox = toolbox;
    this.#store = store;
  }

  /**
   * Those that an agent may delegate to, by name; `files` are those that were written. Nobody is offered a sub-agent
   * that needs a tool which is not there, or one of a set which was not given to the agent.
   */
  of(agent: Agent, files: readonly { share: string; path: string; text: string | null }[]): SubAgent[] {
    if (!this.#toolbox.of(agent).some(({ name }) => name === delegateTool)) return [];
    const written = files.filter(({ share, path }) => share === subAgentsFolder.share && filePattern.test(path));
    const texts = new Map(written.map(({ path, text }) => [path, text ?? ""]));
    const paths = [...new Set([...this.#shipped.keys(), ...texts.keys()])].sort();
    const { subAgents, tools } = agent.settings;
    return paths.flatMap((path) => {
      // A file that cannot be used leaves the shipped one where it is.
      const found = this.#parsed(path, texts.get(path)) ?? this.#parsed(path, this.#shipped.get(path));
      if (!found || (subAgents !== null && !subAgents.includes(found.name))) return [];
      const known = this.#toolbox.named(found.tools);
      const given = known.every(({ set }) => tools.includes(set) || subAgentSets.some((one) => one === set));
      return given && found.tools.every((name) => known.some((tool) => tool.name === name)) ? found : [];
    });
  }

  /** The same by the files as they are now. */
  async now(agent: Agent): Promise<SubAgent[]> {
    const { share, path } = subAgentsFolder;
    const written = (await this.#store?.list(share, path, null, filesMost)) ?? [];
    return this.of(agent, (await this.#store?.read(written)) ?? []);
  }

  /**
   * The one that an agent means by a name, out of `among` if that is given. Throws a `UserError` that names those that
   * there are.
   */
  async called(agent: Agent, name: string, among?: readonly string[]): Promise<SubAgent> {
    const known = (await this.now(agent)).filter((one) => among?.includes(one.name) ?? true);
    const found = known.find((one) => one.name === name);
    if (found) return found;
    throw new UserError(
      `there is no sub-agent ${name}. Sub-agents: ${known.map((one) => one.name).join(", ") || "none"}.`,
    );
  }

  #parsed(path: string, text: string | undefined): SubAgent | undefined {
    if (text === undefined) return undefined;
    const key = `${path}\n${text}`;
    if (this.#read.has(key)) return this.#read.get(key);
    const subAgent = usable(path, text);
    if (this.#read.size > 100) this.#read.clear();
    this.#read.set(key, subAgent);
    return subAgent;
  }
}

const usable = (path: string, text: string): SubAgent | undefined => {
  try {
    return parseSubAgent(parsePath(`system:${path}`), text);
  } catch {
    return undefined;
  }
};
