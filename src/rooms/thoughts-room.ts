import type { Agent, AgentDirectory } from "../agent/agent.ts";
import type { Rights } from "../agent/rights.ts";
import { utter } from "../agent/speech.ts";
import { thoughtsRoomText } from "../context/ephemeris.ts";
import type { History } from "../database/history.ts";
import type { Rooms } from "../database/rooms.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type AgentName, digest, type RoomId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { Mailbox } from "../lib/mailbox.ts";
import { parse } from "../lmml/parse.ts";
import type { MatrixClient } from "../matrix/client.ts";

/** What is thought within this time comes as one message; while an agent goes on thinking, within the longer one. */
const gatherMs = 700;
const goingOnMs = 3_000;
const entriesAtOnce = 40;

export interface ThoughtsParts {
  readonly client: MatrixClient;
  readonly directory: AgentDirectory;
  readonly history: History;
  readonly rooms: Rooms;
  readonly rights: Rights;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/**
 * Shows owner and admins what an agent thinks, calls and is told, in a room that the bridge bot makes for them and
 * that no agent ever enters.
 */
export class ThoughtsRooms {
  readonly #parts: ThoughtsParts;
  readonly #mailbox: Mailbox<AgentName>;
  readonly #gathering = new Set<AgentName>();
  /** When each agent's thoughts were told last, by the monotonic clock. */
  readonly #told = new Map<AgentName, number>();
  readonly #stopped = new AbortController();

  constructor(parts: ThoughtsParts) {
    this.#parts = parts;
    this.#mailbox = new Mailbox((agent, error) =>
      parts.log.warn({ agent }, `thoughts are told later: ${messageOf(error)}`),
    );
  }

  /** The agent has thought something. */
  nudge(name: AgentName): void {
    if (this.#gathering.has(name) || this.#stopped.signal.aborted) return;
    this.#gathering.add(name);
    this.#mailbox.post(name, async () => {
      const { clock } = this.#parts;
      const again = (this.#told.get(name) ?? Number.NEGATIVE_INFINITY) + goingOnMs - clock.monotonic();
      await clock.sleep(Math.max(gatherMs, again), this.#stopped.signal).catch(() => {});
      this.#gathering.delete(name);
      this.#told.set(name, clock.monotonic());
      await this.#tell(name);
    });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#mailbox.idle();
  }

  async #tell(name: AgentName): Promise<void> {
    const { directory, history, client, onOutbox } = this.#parts;
    const agent = await directory.recent(name);
    if (!agent) return;
    for (;;) {
      const entries = await history.untold(name, entriesAtOnce);
      const [first, last] = [entries[0], entries.at(-1)];
      if (!first || !last) return;
      const roomId = agent.thoughtsRoom ?? (await this.#makeRoom(agent));
      const text = thoughtsRoomText(
        agent.displayName,
        agent.userId,
        entries.map(({ entry, subAgent }) => ({ entry: parse(entry), subAgent })),
      );
      const drafts = utter({
        sender: client.botUserId,
        roomId,
        text,
        notice: true,
        key: digest("thoughts", agent.userId, last.id),
      });
      const told = await history.tell(name, first.id, last.id, drafts);
      onOutbox([roomId]);
      if (told && entries.length < entriesAtOnce) return;
    }
  }

  async #makeRoom(agent: Agent): Promise<RoomId> {
    const { client, directory, rights, rooms, serverName } = this.#parts;
    const readers = [...new Set([agent.owner, ...rights.admins])];
    const room = {
      preset: "private_chat",
      name: `Thoughts of ${agent.displayName}`,
      topic: `What ${agent.userId} thinks, calls and is told. No agent sees this room.`,
      invite: readers,
      initial_state: [{ type: "m.room.history_visibility", state_key: "", content: { history_visibility: "invited" } }],
    };
    const roomId = await client.ownRoom(`clevernet_thoughts_${agent.name}`, serverName, room);
    await rooms.setKind(roomId, "thoughts");
    await directory.table.thoughtsRoomMade(agent.name, roomId);
    return roomId;
  }
}
