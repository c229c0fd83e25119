import type { Database } from "../../adapters/database/connection.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { type AgentName, digest, secret, type UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { type AgentRecord, type AgentRow, Agents } from "../tables/agents.ts";
import { Files } from "../tables/files.ts";
import { defaultPersona } from "./persona.ts";
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

/** True if the agent keeps working files: NOW.md, LOG.md and facts.json. */
export const keepsState = ({ settings }: Agent): boolean => settings.tools.includes("memory");

interface Hearers {
  /** The agent's file was changed while we run. */
  readonly onChanged?: (agent: Agent) => void;
  /** A file cannot be used; `key` is the same for the same version of it. */
  readonly onRefused?: (refusal: string, key: string) => void;
}

/** Settings by a version of the file; `isRefused`: those of before, since it cannot be used. */
interface ReadSettings {
  readonly version: number;
  readonly settings: AgentSettings;
  readonly isRefused: boolean;
}

/** All agents of the bridge, and their settings as their files have them now. */
export class AgentDirectory {
  readonly #agents: Agents;
  readonly #files: Files;
  readonly #log: Log;
  readonly #settings = new Map<AgentName, ReadSettings>();
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
    const wasAdded = await this.#agents.add({
      name,
      userId,
      owner,
      suffix: digest("suffix", userId)
        .replace(/[^a-z0-9]/gi, "")
        .slice(0, 4)
        .toLowerCase(),
      deviceId: `CLEVERNET${secret(4).toUpperCase()}`,
    });
    if (!wasAdded) return false;
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

  async persona(agent: Agent): Promise<string | undefined> {
    const [file] = await this.#files.read([splitPath(personaPath(agent))]);
    return file?.text ?? undefined;
  }

  /** The agent with its current settings; undefined when there is none of this name. */
  async find(name: AgentName): Promise<Agent | undefined> {
    const record = await this.#agents.find(name);
    return record && this.complete(record);
  }

  /** Finds an agent as it was at most a moment ago: for questions that come with every event. */
  findRecent(name: AgentName): Promise<Agent | undefined> {
    const now = this.#clock.monotonic();
    const known = this.#recent.get(name);
    if (known && now - known.at < recentMs) return known.agent;
    const agent = this.find(name);
    this.#recent.set(name, { at: now, agent });
    agent.catch(() => this.#recent.delete(name));
    return agent;
  }

  /** Finds an agent as it was when it was last read, however long ago. */
  async lastKnown(name: AgentName): Promise<Agent | undefined> {
    return (await this.#recent.get(name)?.agent) ?? this.findRecent(name);
  }

  async all(): Promise<Agent[]> {
    return (await this.#agents.all()).map((record) => this.complete(record));
  }

  /** Ends what agents have set for themselves, which holds until a start. */
  async restart(): Promise<void> {
    await this.#agents.forgetTimers();
    await this.all();
  }

  /** An agent whose record was read. A file that cannot be used is refused with its reason; the last good settings stay. */
  complete({ fileVersion: version, fileText, timerVersion, timerInFile, ...row }: AgentRecord): Agent {
    const known = this.#settings.get(row.name);
    const read = known?.version === version ? known : this.#read(row.name, version, fileText);
    const { settings } = read;
    const { wakeUpTimerSeconds } = settings;
    const isNew = timerVersion !== version && !read.isRefused;
    const counts = isNew && (timerVersion === null || timerInFile !== wakeUpTimerSeconds);
    const agent = withSettings(counts ? { ...row, wakeUpTimerSeconds } : row, settings);
    if (isNew) {
      this.#agents
        .takeTimer(row.name, wakeUpTimerSeconds, version)
        .catch((error: unknown) => this.#log.warn(messageOf(error)));
    }
    if (known && read !== known) this.#hearers.onChanged?.(agent);
    return agent;
  }

  #read(name: AgentName, version: number, text: string | null): ReadSettings {
    const where = `agents:${settingsFile(name)}`;
    let read: ReadSettings;
    try {
      read = { version, settings: parseAgentSettings(JSON.parse(text ?? "{}"), where), isRefused: false };
    } catch (error) {
      const lastGood = this.#settings.get(name)?.settings ?? parseAgentSettings({}, where);
      read = { version, settings: lastGood, isRefused: true };
      const refusal = `${where} is refused, the last good one stays: ${messageOf(error)}`;
      this.#log.error({ agent: name }, refusal);
      this.#hearers.onRefused?.(refusal, digest(where, version));
    }
    this.#settings.set(name, read);
    return read;
  }
}

const withSettings = (row: AgentRow, settings: AgentSettings): Agent => ({
  ...row,
  settings,
  displayName: settings.displayName ?? row.name,
});
