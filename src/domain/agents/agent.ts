import type { Database } from "../../adapters/database/connection.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type AgentName, digest, secret, type UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import type { Log } from "../../base/lib/log.ts";
import { type AgentRecord, type AgentRow, Agents } from "../tables/agents.ts";
import { Files } from "../tables/files.ts";
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

## Capabilities
- Files: you find, read, write, compare and summarise them.
- Exact computation, reminders for a day and an hour, tasks that take many steps.

## Guidelines
- Look before you say that something is not there.
- Explain with a concrete example.
- Ask when a request can be understood in two ways.
- Note what people prefer, and act on it later.
`;

interface Hearers {
  /** The agent's file was changed while we run. */
  readonly onChanged?: (agent: Agent) => void;
  /** A file cannot be used; `key` is the same for the same version of it. */
  readonly onRefused?: (refusal: string, key: string) => void;
}

/** All agents of the bridge, and their settings as their files have them now. */
export class AgentDirectory {
  readonly #agents: Agents;
  readonly #files: Files;
  readonly #log: Log;
  readonly #settings = new Map<AgentName, { version: number; settings: AgentSettings }>();
  readonly #hearers: Hearers;
  readonly #clock: Clock;
  readonly #recent = new Map<AgentName, { readonly at: number; readonly agent: Promise<Agent | undefined> }>();

  constructor(database: Database, clock: Clock, log: Log, hearers: Hearers = {}) {
    this.#agents = new Agents(database);
    this.#files = new Files(database);
    this.#clock = clock;
    this.#log = log;
    this.#hearers = hearers;
  }

  get table(): Agents {
    return this.#agents;
  }

  /** Adds what the database does not know; what it knows stays as it is. `false`: the agent was deleted, and stays so. */
  async seed(seed: AgentSeed, serverName: string): Promise<boolean> {
    const { name, owner } = seed;
    const userId = agentUserId(name, serverName);
    const displayName = seed.settings.displayName ?? name;
    const added = await this.#agents.add({
      name,
      userId,
      owner,
      suffix: digest("suffix", userId)
        .replace(/[^a-z0-9]/gi, "")
        .slice(0, 4)
        .toLowerCase(),
      deviceId: `CLEVERNET${secret(4).toUpperCase()}`,
    });
    if (!added) return false;
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
    this.#recent.delete(name);
    return true;
  }

  /** Forgets the agent as it was a moment ago. */
  forget(name: AgentName): void {
    this.#recent.delete(name);
  }

  /** The fields of `agent.json` as they are written there. */
  async fields(name: AgentName): Promise<Readonly<Record<string, unknown>>> {
    const [file] = await this.#files.read([{ share: "agents", path: settingsFile(name) }]);
    const fields: unknown = JSON.parse(file?.text ?? "{}");
    if (isObject(fields)) return fields;
    throw new UserError(`agents:${settingsFile(name)} holds no settings. Write it anew.`);
  }

  /** @throws UserError that lists every mistake */
  async writeFields(agent: Agent, fields: Readonly<Record<string, unknown>>): Promise<void> {
    const path = settingsFile(agent.name);
    parseAgentSettings(fields, `agents:${path}`);
    const text = JSON.stringify(fields, undefined, 2);
    await this.#files.write({ share: "agents", path, contentType: "application/json", owner: agent.owner, text });
    this.#recent.delete(agent.name);
  }

  async persona(agent: Agent): Promise<string | undefined> {
    const [file] = await this.#files.read([splitPath(personaPath(agent))]);
    return file?.text ?? undefined;
  }

  async writePersona(agent: Agent, text: string): Promise<void> {
    const file = splitPath(personaPath(agent));
    await this.#files.write({ ...file, contentType: "text/markdown", owner: agent.owner, text });
  }

  /** The agent with its current settings; undefined when there is none of this name. */
  async find(name: AgentName): Promise<Agent | undefined> {
    const record = await this.#agents.find(name);
    return record && this.complete(record);
  }

  /** Finds an agent as it was at most a moment ago: for questions that come with every event. */
  recent(name: AgentName): Promise<Agent | undefined> {
    const now = this.#clock.monotonic();
    const known = this.#recent.get(name);
    if (known && now - known.at < recentMs) return known.agent;
    const agent = this.find(name);
    this.#recent.set(name, { at: now, agent });
    agent.catch(() => this.#recent.delete(name));
    return agent;
  }

  /** Finds an agent as it was when it was last read, however long ago. */
  async known(name: AgentName): Promise<Agent | undefined> {
    return (await this.#recent.get(name)?.agent) ?? this.recent(name);
  }

  async all(): Promise<Agent[]> {
    return (await this.#agents.all()).map((record) => this.complete(record));
  }

  /** An agent whose record was read. A file that cannot be used is refused with its reason; the last good settings stay. */
  complete({ fileVersion: version, fileText, ...row }: AgentRecord): Agent {
    const known = this.#settings.get(row.name);
    if (known?.version === version) return withSettings(row, known.settings);
    const where = `agents:${settingsFile(row.name)}`;
    let settings: AgentSettings;
    try {
      settings = parseAgentSettings(JSON.parse(fileText ?? "{}"), where);
    } catch (error) {
      const refusal = `${where} is refused, the last good one stays: ${messageOf(error)}`;
      this.#log.error({ agent: row.name }, refusal);
      this.#hearers.onRefused?.(refusal, digest(where, version));
      settings = known?.settings ?? parseAgentSettings({}, where);
    }
    this.#settings.set(row.name, { version, settings });
    const { wakeUpTimerSeconds } = settings;
    const agent = withSettings({ ...row, wakeUpTimerSeconds }, settings);
    if (row.wakeUpTimerSeconds !== wakeUpTimerSeconds) {
      this.#agents.setTimer(row.name, wakeUpTimerSeconds).catch((error: unknown) => this.#log.warn(messageOf(error)));
    }
    if (known) this.#hearers.onChanged?.(agent);
    return agent;
  }
}

const withSettings = (row: AgentRow, settings: AgentSettings): Agent => ({
  ...row,
  settings,
  displayName: settings.displayName ?? row.name,
});
