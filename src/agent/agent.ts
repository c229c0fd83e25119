import { type AgentRecord, type AgentRow, Agents } from "../database/agents.ts";
import type { Database } from "../database/connection.ts";
import { Files } from "../database/files.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type AgentName, digest, secret, type UserId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { type AgentSettings, parseAgentSettings } from "./settings.ts";

/** An agent as it is now: who it is to the homeserver, and how its files configure it. */
export interface Agent extends AgentRow {
  readonly settings: AgentSettings;
  readonly displayName: string;
}

/** An agent as the configuration file describes it. */
export interface AgentSeed {
  readonly name: AgentName;
  readonly owner: UserId;
  readonly persona: string | undefined;
  readonly settings: AgentSettings;
}

export const agentUserId = (name: AgentName, serverName: string): UserId => `@agent_${name}:${serverName}` as UserId;

const recentMs = 1_000;

/** Path of an agent's settings in the share `agents`. */
export const settingsFile = (name: AgentName): string => `/${name}/agent.json`;
export const personaPath = (agent: Agent): string => agent.settings.personaFile ?? `agents:/${agent.name}/persona.md`;

/** Splits `share:/path`. */
export const splitPath = (path: string): { share: string; path: string } => {
  const colon = path.indexOf(":");
  return { share: path.slice(0, colon), path: path.slice(colon + 1) };
};

const defaultPersona = (displayName: string): string => `# ${displayName}

You are ${displayName}, an agent who lives on Matrix and works for the people in its rooms.

## Traits
- Helpful, honest and calm; you say what you do not know.
- Brief: a short answer first, details when they are wanted.

## Guidelines
- Look before you say that something is not there.
- Explain with a concrete example.
- Ask when a request can be understood in two ways.
- Note what people prefer, and act on it later.
`;

/** All agents of the bridge, and their settings as their files have them now. */
export class AgentDirectory {
  readonly #agents: Agents;
  readonly #files: Files;
  readonly #log: Log;
  readonly #settings = new Map<AgentName, { version: number; settings: AgentSettings }>();
  readonly #onSettings: (agent: Agent) => void;
  readonly #clock: Clock;
  readonly #recent = new Map<AgentName, { readonly at: number; readonly agent: Promise<Agent | undefined> }>();

  constructor(database: Database, clock: Clock, log: Log, onSettings: (agent: Agent) => void = () => {}) {
    this.#agents = new Agents(database);
    this.#files = new Files(database);
    this.#clock = clock;
    this.#log = log;
    this.#onSettings = onSettings;
  }

  get table(): Agents {
    return this.#agents;
  }

  /** Adds what the configuration names and the database does not know; what it knows stays as it is. */
  async seed(seed: AgentSeed, serverName: string): Promise<void> {
    const { name, owner } = seed;
    const userId = agentUserId(name, serverName);
    const displayName = seed.settings.displayName ?? name;
    await this.#agents.add({
      name,
      userId,
      owner,
      suffix: digest("suffix", userId)
        .replace(/[^a-z0-9]/gi, "")
        .slice(0, 4)
        .toLowerCase(),
      deviceId: `CLEVERNET${secret(4).toUpperCase()}`,
    });
    const file = { share: "agents", owner };
    await this.#files.seed({
      ...file,
      path: settingsFile(name),
      contentType: "application/json",
      text: JSON.stringify({ ...seed.settings, agentFlags: seed.settings.agentFlags.join(", ") }, undefined, 2),
    });
    await this.#files.seed({
      ...file,
      path: `/${name}/persona.md`,
      contentType: "text/markdown",
      text: seed.persona ?? defaultPersona(displayName),
    });
  }

  /** The agent with its current settings; undefined when there is none of this name. */
  async find(name: AgentName): Promise<Agent | undefined> {
    const record = await this.#agents.find(name);
    return record && this.#complete(record);
  }

  /** The same, as it was at most a moment ago: for what is asked with every event. */
  recent(name: AgentName): Promise<Agent | undefined> {
    const now = this.#clock.monotonic();
    const known = this.#recent.get(name);
    if (known && now - known.at < recentMs) return known.agent;
    const agent = this.find(name);
    this.#recent.set(name, { at: now, agent });
    agent.catch(() => this.#recent.delete(name));
    return agent;
  }

  async all(): Promise<Agent[]> {
    return (await this.#agents.all()).map((record) => this.#complete(record));
  }

  /** A file that cannot be used is refused with its reason in the log; the last good settings stay. */
  #complete({ fileVersion: version, fileText, ...row }: AgentRecord): Agent {
    const known = this.#settings.get(row.name);
    if (known?.version === version) return withSettings(row, known.settings);
    const where = `agents:${settingsFile(row.name)}`;
    let settings: AgentSettings;
    try {
      settings = parseAgentSettings(JSON.parse(fileText ?? "{}"), where);
    } catch (error) {
      this.#log.error({ agent: row.name }, `${where} is refused, the last good one stays: ${messageOf(error)}`);
      settings = known?.settings ?? parseAgentSettings({}, where);
    }
    this.#settings.set(row.name, { version, settings });
    const agent = withSettings(row, settings);
    this.#onSettings(agent);
    return agent;
  }
}

const withSettings = (row: AgentRow, settings: AgentSettings): Agent => ({
  ...row,
  settings,
  displayName: settings.displayName ?? row.name,
});
