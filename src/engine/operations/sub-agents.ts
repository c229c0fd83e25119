import { UserError } from "../../base/lib/errors.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { subAgentSets } from "../../domain/agents/settings.ts";
import {
  delegateTool,
  isSubAgentPath,
  parseSubAgent,
  type SubAgent,
  subAgentsFolder,
} from "../../domain/agents/sub-agent.ts";
import { parsePath } from "../../domain/files/path.ts";
import type { Store } from "../../domain/files/store.ts";
import type { Toolbox } from "./toolbox.ts";

const filesMost = 1_000;

/** Sub-agents that are shipped, and what admins laid over them or put beside them. */
export class SubAgents {
  readonly #shipped: ReadonlyMap<string, string>;
  readonly #toolbox: Toolbox;
  readonly #store: Store | undefined;
  /** Sub-agents that were read, by path and text. */
  readonly #read = new Map<string, SubAgent | undefined>();

  /** `shipped`: texts by their paths in `system:`, whose files are in `store`. */
  constructor(shipped: ReadonlyMap<string, string>, toolbox: Toolbox, store: Store | undefined) {
    this.#shipped = new Map([...shipped].filter(([path]) => isSubAgentPath(path)));
    this.#toolbox = toolbox;
    this.#store = store;
  }

  /**
   * Those that an agent may delegate to, by name; `files` are those that were written. Nobody is offered a sub-agent
   * that needs a tool which is not there, or one of a set which was not given to the agent.
   */
  of(agent: Agent, files: readonly { share: string; path: string; text: string | null }[]): SubAgent[] {
    if (!this.#toolbox.of(agent).some(({ name }) => name === delegateTool)) return [];
    const written = files.filter(({ share, path }) => share === subAgentsFolder.share && isSubAgentPath(path));
    const texts = new Map(written.map(({ path, text }) => [path, text ?? ""]));
    const paths = [...new Set([...this.#shipped.keys(), ...texts.keys()])].sort();
    const { subAgents, tools } = agent.settings;
    return paths.flatMap((path) => {
      // A file that cannot be used leaves the shipped one where it is.
      const found = this.#parse(path, texts.get(path)) ?? this.#parse(path, this.#shipped.get(path));
      if (!found || (subAgents !== null && !subAgents.includes(found.name))) return [];
      const known = this.#toolbox.withNames(found.tools);
      const isGiven = known.every(({ set }) => [...tools, ...subAgentSets].some((one) => one === set));
      return isGiven && found.tools.every((name) => known.some((tool) => tool.name === name)) ? found : [];
    });
  }

  /** Reads the sub-agents as their files are now. */
  async now(agent: Agent): Promise<SubAgent[]> {
    const { share, path } = subAgentsFolder;
    const written = (await this.#store?.list(share, path, null, filesMost)) ?? [];
    return this.of(agent, (await this.#store?.read(written)) ?? []);
  }

  /**
   * The one that an agent means by a name, out of `among` if that is given. Throws a `UserError` that names those that
   * there are.
   */
  async byName(agent: Agent, name: string, among?: readonly string[]): Promise<SubAgent> {
    const known = (await this.now(agent)).filter((one) => among?.includes(one.name) ?? true);
    const found = known.find((one) => one.name === name);
    if (found) return found;
    throw new UserError(
      `there is no sub-agent ${name}. Sub-agents: ${known.map((one) => one.name).join(", ") || "none"}.`,
    );
  }

  #parse(path: string, text: string | undefined): SubAgent | undefined {
    if (text === undefined) return undefined;
    const key = `${path}\n${text}`;
    if (this.#read.has(key)) return this.#read.get(key);
    const subAgent = parseIfUsable(path, text);
    if (this.#read.size > 100) this.#read.clear();
    this.#read.set(key, subAgent);
    return subAgent;
  }
}

const parseIfUsable = (path: string, text: string): SubAgent | undefined => {
  try {
    return parseSubAgent(parsePath(`system:${path}`), text);
  } catch {
    return undefined;
  }
};
