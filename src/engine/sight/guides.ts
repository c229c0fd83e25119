import type { AgentName } from "../../base/lib/ids.ts";
import { guideTitle } from "../../base/prompt/chat-interface.ts";
import { subAgentsGuide } from "../../base/prompt/subagent.ts";
import type { GuideView } from "../../base/prompt/types.ts";
import { type Agent, keepsState } from "../../domain/agents/agent.ts";
import { subAgentsFolder } from "../../domain/agents/sub-agent.ts";
import { rulesFile, unwrittenText } from "../../domain/files/working-files.ts";
import type { DeskFile } from "../../domain/tables/windows.ts";
import type { SubAgents } from "../operations/sub-agents.ts";

const folder = "/guides";
const directives = "/directives";
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
    const own = [folder, directives].map((path) => ({ share: "agents", path: `/${agent}${path}` }));
    return [{ share: "system", path: folder }, subAgentsFolder, ...own];
  }

  /**
   * The first guide, other guides of the system, the agent's own, each by its name; then whom it may delegate to; last,
   * its rules. Rules that nobody has written are shown in the layout `seed` alone: descriptions of tools say the same.
   */
  of(agent: Agent, files: readonly DeskFile[]): GuideView[] {
    const written = (share: string, where: string): [string, string][] =>
      files
        .filter((file) => file.share === share && file.path.startsWith(`${where}/`) && file.path.endsWith(".md"))
        .map((file) => [file.path, file.text ?? ""]);
    const system = new Map([...this.#shipped, ...written("system", folder)]);
    const first = system.get(firstGuide);
    system.delete(firstGuide);
    const named = ([path, text]: readonly [string, string]): GuideView => ({
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
      ...this.#rulesOf(agent, files),
    ];
  }

  #rulesOf(agent: Agent, files: readonly DeskFile[]): GuideView[] {
    const isSeed = agent.settings.layout === "seed";
    const file = rulesFile(agent.name);
    const written = files.find(({ share, path }) => share === file.share && path === file.path);
    const text = written ? (written.text ?? "") : isSeed && keepsState(agent) ? (unwrittenText(file) ?? "") : "";
    return text.trim() === "" ? [] : [{ title: "AGENTS.md", text, isPlain: isSeed }];
  }
}
