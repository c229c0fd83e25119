import { guideTitle } from "../context/chat-interface.ts";
import type { DeskFile } from "../database/windows.ts";
import type { AgentName } from "../lib/ids.ts";

/** A text about how the agent's world works, as the agent is shown it. */
export interface Guide {
  readonly title: string;
  readonly text: string;
}

/** The guide that everybody is shown first. */
const firstGuide = "/guides/clevernet.md";

const heading = (text: string): string | undefined => /^#[ \t]+(\S.*)$/m.exec(text)?.[1];

/** Guides that are shipped, what admins laid over them or put beside them, and the agent's own. */
export class Guides {
  readonly #shipped: ReadonlyMap<string, string>;
  readonly #serverName: string;

  /** `shipped`: texts by their paths in `system:`. */
  constructor(shipped: ReadonlyMap<string, string>, serverName: string) {
    this.#shipped = shipped;
    this.#serverName = serverName;
  }

  /** Where guides are looked for that are not shipped. */
  folders(agent: AgentName): { share: string; path: string }[] {
    return [
      { share: "system", path: "/guides" },
      { share: "agents", path: `/${agent}/guides` },
    ];
  }

  /** The first guide, other guides of the system, then the agent's own, each by its name. */
  of(agent: AgentName, files: readonly DeskFile[]): Guide[] {
    const written = (share: string, folder: string): [string, string][] =>
      files
        .filter((file) => file.share === share && file.path.startsWith(`${folder}/`) && file.path.endsWith(".md"))
        .map((file) => [file.path, file.text ?? ""]);
    const system = new Map([...this.#shipped, ...written("system", "/guides")]);
    const first = system.get(firstGuide);
    system.delete(firstGuide);
    const named = ([path, text]: readonly [string, string]): Guide => ({
      title: heading(text) ?? path.slice(path.lastIndexOf("/") + 1, -".md".length),
      text,
    });
    const byPath = (entries: Iterable<[string, string]>) =>
      [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).filter(([, text]) => text.trim() !== "");
    return [
      ...(first === undefined ? [] : [{ title: guideTitle(this.#serverName), text: first }]),
      ...byPath(system).map(named),
      ...byPath(written("agents", `/${agent}/guides`)).map(named),
    ];
  }
}
