import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import type { AgentName, Conversation, UserId } from "../../base/lib/ids.ts";
import type { Agent, AgentDirectory, AgentSeed } from "../../domain/agents/agent.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { Turns } from "../../domain/tables/turns.ts";
import type { TurnRunner } from "../turn/runner.ts";

export interface LifecycleParts {
  readonly serverName: string;
  readonly directory: AgentDirectory;
  readonly rooms: Rooms;
  readonly turns: Turns;
  readonly runner: TurnRunner;
  readonly client: MatrixClient;
  /** Makes a new agent's user and profile, and answers the invitations that it has already. */
  readonly welcome: (agent: Agent) => Promise<void>;
  /** Called when other people may watch the agent. */
  readonly onReaders: () => void;
  /** Nothing may be left in memory of what the user's device knew. */
  readonly onErased: (userId: UserId) => void;
  readonly onWaiting: (conversations: readonly Conversation[]) => void;
}

/** The life of an agent, from its creation to its end. Every method may be repeated. */
export class AgentLifecycle {
  readonly #parts: LifecycleParts;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  /** Undefined: there was an agent of this name, and it was deleted. */
  async create(seed: AgentSeed): Promise<Agent | undefined> {
    const { directory, serverName, welcome } = this.#parts;
    if (!(await directory.seed(seed, serverName))) return undefined;
    const agent = await directory.find(seed.name);
    if (agent) await welcome(agent);
    return agent;
  }

  async setOwner(agent: Agent, owner: UserId): Promise<void> {
    const { directory, onReaders } = this.#parts;
    await directory.table.setOwner(agent.name, owner);
    directory.forget(agent.name);
    onReaders();
  }

  /** From now on the agent wakes for nothing; what it is working on is stopped. */
  async pause(name: AgentName, by: string): Promise<void> {
    const { directory, runner } = this.#parts;
    await directory.table.setPaused(name, true);
    directory.forget(name);
    for (const conversation of await directory.table.atWork(name)) await runner.stop(conversation, by);
  }

  async resume(name: AgentName): Promise<void> {
    const { directory, onWaiting, turns } = this.#parts;
    await directory.table.setPaused(name, false);
    directory.forget(name);
    onWaiting(await turns.findWaiting(name));
  }

  /**
   * The agent leaves its rooms, and its user is deactivated. What it knew is kept, unless it is erased.
   * @throws HomeserverError when the homeserver cannot be reached; what was done until then is not done again
   */
  async remove(agent: Agent, by: string, erases: boolean): Promise<void> {
    const { client, directory, onErased, rooms } = this.#parts;
    await this.pause(agent.name, by);
    for (const roomId of await rooms.joinedRooms(agent.userId)) {
      await unlessRefused(client.leave({ userId: agent.userId }, roomId, "This agent was deleted."));
    }
    if (agent.isRegistered) await unlessRefused(client.deactivate(agent.userId, erases));
    if (erases) await directory.table.erase(agent.name);
    await directory.table.remove(agent.name);
    if (erases) onErased(agent.userId);
    directory.forget(agent.name);
  }
}

/** A request that the homeserver refuses for good is done already, or cannot be. */
async function unlessRefused(request: Promise<void>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof HomeserverError && error.isFinal)) throw error;
  }
}
