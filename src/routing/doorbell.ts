import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { HomeserverError, type MatrixClient } from "../matrix/client.ts";

/** Synapse answers 502 while an attempt of its own is still running: then it is worth asking again. */
const pingAttempts = 15;
const pingPauseMs = 2_000;

/**
 * Makes the homeserver send what it holds back, at once instead of after up to 512 seconds. A ping is enough while it
 * knows that we were away; after its own restart it begins to push only when something concerns us, and a state event
 * of the bot's own does.
 */
export class Doorbell {
  readonly #client: MatrixClient;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #serverName: string;
  readonly #stopped = new AbortController();

  constructor(client: MatrixClient, serverName: string, clock: Clock, log: Log) {
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
    this.#serverName = serverName;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Never throws: what is not pushed is found by the sweep. */
  async ring(): Promise<void> {
    await Promise.all([this.#ping(), this.#sendState()]);
  }

  async #ping(): Promise<void> {
    for (let attempt = 1; attempt <= pingAttempts && !this.#stopped.signal.aborted; attempt++) {
      try {
        await this.#client.ping();
        return;
      } catch (error) {
        this.#log.info({ attempt }, `the homeserver was asked to resume: ${messageOf(error)}`);
        if (error instanceof HomeserverError && error.final) return;
      }
      await this.#clock.sleep(pingPauseMs, this.#stopped.signal).catch(() => {});
    }
  }

  async #sendState(): Promise<void> {
    const bot = { userId: this.#client.botUserId };
    try {
      const rung = { at: this.#clock.now().getTime() };
      const room = { preset: "private_chat", name: "Clevernet's doorbell" };
      const roomId = await this.#client.ownRoom("clevernet_doorbell", this.#serverName, room);
      await this.#client.sendState(bot, roomId, "org.clevernet.doorbell", "", rung);
    } catch (error) {
      this.#log.info(`the doorbell could not be rung: ${messageOf(error)}`);
    }
  }
}
