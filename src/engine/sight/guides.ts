import type { AgentName } from "../../base/lib/ids.ts";
import { guideTitle } from "../../base/prompt/chat-interface.ts";
import { subAgentsGuide } from "../../base/prompt/subagent.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { subAgentsFolder } from "../../domain/agents/sub-agent.ts";
import type { DeskFile } from "../../domain/tables/windows.ts";
import type { SubAgents } from "../operations/sub-agents.ts";

/** A text about how the agent's world works, as the agent is shown it. */
export interface Guide {
  readonly title: string;
  readonly text: string;
}

const folder = "/guides";
/** The guide that everybody is shown first. */
const firstGuide = `${folder}/clevernet.md`;

const heading = (text: string): string | undefined => /^#[ \t]+(\S.*)$/m.exec(text)?.[1];

/** Guides that are shipped, what admins laid over them or put beside them, and the agent's own. */
export class Guides {
  readonly #shipped: ReadonlyMap<string, string>;
  readonly #serverName: string;
  readonly #subAgents: SubAgents;

  /** `shipped`: texts by their paths in `system:`. */
  constructor(shipped: ReadonlyMap<string, string>, serverName: string, subAgents: SubAgents) {
    this.#shipped = new Map([...shipped].filter(([path]) => path.startsWith(`${folder}/`)));
    this.#serverName = serverName;
    this.#subAgents = subAgents;
  }

  /** Folders of guides and sub-agents that are not shipped. */
  folders(agent: AgentName): { share: string; path: string }[] {
    return [{ share: "system", path: folder }, subAgentsFolder, { share: "agents", path: `/${agent}${folder}` }];
  }

  /** The first guide, other guides of the system, the agent's own, each by its name; last, whom it may delegate to. */
  of(agent: Agent, files: readonly DeskFile[]): Guide[] {
    const written = (share: string, where: string): [string, string][] =>
      files
        .filter((file) => file.share === share && file.path.startsWith(`${where}/`) && file.path.endsWith(".md"))
        .map((file) => [file.path, file.text ?? ""]);
    const system = new Map([...this.#shipped, ...written("system", folder)]);
    const first = system.get(firstGuide);
    system.delete(firstGuide);
    const named = ([path, text]: readonly [string, string]): Guide => ({
      title: heading(text) ?? path.slice(path.lastIndexOf("/") + 1, -".md".length),
      text,
    });
    const byPath = (entries: Iterable<[string, string]>) =>
      [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).filter(([, text]) => text.trim() !== "");
    const subAgents = this.#subAgents.of(agent, files);
    return [
      ...(first === undefined ? [] : [{ title: guideTitle(this.#serverName), text: first }]),
      ...byPath(system).map(named),
      ...byPath(written("agents", `/${agent.name}${folder}`)).map(named),
      ...(subAgents.length > 0 ? [subAgentsGuide(subAgents)] : []),
    ];
  }
}
