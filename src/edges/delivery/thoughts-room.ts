import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { type AgentName, type RoomId, secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Mailbox } from "../../base/lib/mailbox.ts";
import { sealedThoughts, thoughtsRoomText } from "../../base/prompt/ephemeris.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { History } from "../../domain/tables/history.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { inviteLevel } from "../../engine/control/guest-list.ts";

/** Time within which thoughts come as one message; the longer one holds while an agent goes on thinking. */
const gatherMs = 700;
const goingOnMs = 3_000;
const entriesAtOnce = 40;

export interface ThoughtsParts {
  readonly client: MatrixClient;
  readonly directory: AgentDirectory;
  readonly history: History;
  readonly outbox: Pick<Outbox, "add">;
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
  /** Time at which each agent's thoughts were told last, by the monotonic clock. */
  readonly #told = new Map<AgentName, number>();
  /** Time at which the progress of a call was shown last. */
  readonly #shown = new Map<AgentName, number>();
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

  /** Shows that a call of the agent in this room goes on; not more often than its thoughts are told. */
  show(name: AgentName, roomId: RoomId, text: string): void {
    const { client, clock, directory, onOutbox, outbox, rooms } = this.#parts;
    const now = clock.monotonic();
    if (this.#stopped.signal.aborted || now - (this.#shown.get(name) ?? Number.NEGATIVE_INFINITY) < goingOnMs) return;
    this.#shown.set(name, now);
    this.#mailbox.post(name, async () => {
      const agent = await directory.findRecent(name);
      if (!agent?.thoughtsRoom || (await rooms.isEncrypted(roomId))) return;
      const place = { sender: client.botUserId, roomId: agent.thoughtsRoom, isNotice: true, key: secret(16) };
      await outbox.add(utter({ ...place, text: `${agent.displayName} (${agent.userId}): ${text}` }));
      onOutbox([agent.thoughtsRoom]);
    });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#mailbox.idle();
  }

  async #tell(name: AgentName): Promise<void> {
    const { directory, history, client, onOutbox } = this.#parts;
    const agent = await directory.findRecent(name);
    if (!agent) return;
    for (;;) {
      const entries = await history.findUntold(name, entriesAtOnce);
      const [first, last] = [entries[0], entries.at(-1)];
      if (!first || !last) return;
      const roomId = agent.thoughtsRoom ?? (await this.#makeRoom(agent));
      const text = thoughtsRoomText(
        agent.displayName,
        agent.userId,
        entries.flatMap(({ entry, subAgent, isSealed, opensTurn }) => {
          if (!isSealed) return { entry: fromStored(entry), subAgent };
          return opensTurn ? { entry: sealedThoughts, subAgent: null } : [];
        }),
      );
      // Told once by `history.tell`; the number of an entry may come again in a restored database.
      const key = secret(16);
      const drafts = text === "" ? [] : utter({ sender: client.botUserId, roomId, text, isNotice: true, key });
      const wasTold = await history.tell(name, first.id, last.id, drafts);
      onOutbox([roomId]);
      if (wasTold && entries.length < entriesAtOnce) return;
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
      power_level_content_override: { invite: inviteLevel },
      initial_state: [{ type: "m.room.history_visibility", state_key: "", content: { history_visibility: "invited" } }],
    };
    const roomId = await client.ownRoom(`clevernet_thoughts_${agent.name}`, serverName, room);
    await rooms.setKind(roomId, "thoughts");
    await directory.table.thoughtsRoomMade(agent.name, roomId);
    return roomId;
  }
}
