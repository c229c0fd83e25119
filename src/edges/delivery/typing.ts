import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { AgentRow } from "../../domain/tables/agents.ts";

/** An answer that is there within this time needs no announcement. */
const delayMs = 300;
/** The homeserver forgets after this, whatever becomes of us. */
const timeoutMs = 30_000;
const repeatMs = 20_000;

/** Shows in the room that the agent is at work, and in its thoughts room that there will be something to read. */
export class Typing {
  readonly #client: MatrixClient;
  readonly #clock: Clock;
  /** Number of turns that keep a user typing in a room. */
  readonly #shown = new Map<string, number>();

  constructor(client: MatrixClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Returns how to end it. */
  show(agent: AgentRow, roomId: RoomId): () => void {
    const ended = new AbortController();
    if (roomId !== HOME) void this.#keep(agent.userId, roomId, ended.signal);
    if (agent.thoughtsRoom) void this.#keep(this.#client.botUserId, agent.thoughtsRoom, ended.signal);
    // With a reason of its own: without one, an error with its stack is made for each turn.
    return () => ended.abort(null);
  }

  async #keep(userId: UserId, roomId: RoomId, ended: AbortSignal): Promise<void> {
    const pause = (ms: number) => this.#clock.sleep(ms, ended).catch(() => {});
    await pause(delayMs);
    if (ended.aborted) return;
    const key = `${userId} ${roomId}`;
    this.#shown.set(key, (this.#shown.get(key) ?? 0) + 1);
    while (!ended.aborted) {
      await this.#tell(userId, roomId, timeoutMs);
      await pause(repeatMs);
    }
    const left = (this.#shown.get(key) ?? 1) - 1;
    if (left > 0) this.#shown.set(key, left);
    else {
      this.#shown.delete(key);
      await this.#tell(userId, roomId, 0);
    }
  }

  /** Nothing depends on it: a homeserver that does not answer is told again, or forgets by itself. */
  async #tell(userId: UserId, roomId: RoomId, ms: number): Promise<void> {
    await this.#client.setTyping({ userId }, roomId, ms).catch(() => {});
  }
}
