import net from "node:net";
import type { Clock } from "../../base/lib/clock.ts";
import type { MatrixClient } from "./client.ts";

/** A homeserver behind a proxy that is back within this time may have been away unnoticed. */
const askEveryMs = 2_000;
/** This process was frozen, or its machine slept, if more time passes between two questions. */
const frozenAfterMs = 3 * askEveryMs;

export interface WatchEars {
  /** Called once before each `onBack`. */
  readonly onGone: () => void;
  readonly onBack: () => void;
}

type WatchedClient = Pick<MatrixClient, "isAlive" | "onUnreachable">;

/**
 * Notices that the homeserver went away and came back: an idle connection to it ends when its process does, and any
 * request that found nobody tells as well. A process that was frozen has heard of nothing meanwhile: to it the homeserver
 * was away.
 */
export class HomeserverWatch {
  readonly #client: WatchedClient;
  readonly #clock: Clock;
  readonly #address: { host: string; port: number };
  readonly #ears: WatchEars;
  readonly #stopped = new AbortController();
  #socket: net.Socket | undefined;
  #isWaiting = false;

  constructor(client: WatchedClient, homeserverUrl: string, clock: Clock, ears: WatchEars) {
    const url = new URL(homeserverUrl);
    this.#client = client;
    this.#clock = clock;
    this.#address = {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port) || (url.protocol === "https:" ? 443 : 80),
    };
    this.#ears = ears;
    client.onUnreachable = () => this.#noteGone();
  }

  /** True if the homeserver answered when it was last asked, some seconds ago at most. */
  get isReachable(): boolean {
    return !this.#isWaiting;
  }

  start(): void {
    this.#listen();
    void this.#ask().catch(() => {});
  }

  #listen(): void {
    if (this.#stopped.signal.aborted) return;
    const socket = net.connect(this.#address);
    let wasUp = false;
    socket.once("connect", () => {
      wasUp = true;
      socket.unref();
    });
    socket.once("error", () => {});
    socket.once("close", () => {
      if (this.#socket !== socket) return;
      // Ending an idle connection is no news; that nobody listens any more is.
      if (wasUp)
        void this.#clock.sleep(200, this.#stopped.signal).then(
          () => this.#socket === socket && this.#listen(),
          () => {},
        );
      else this.#noteGone();
    });
    this.#socket = socket;
  }

  stop(): void {
    this.#stopped.abort();
    this.#socket?.destroy();
  }

  #noteGone(): void {
    if (this.#isWaiting || this.#stopped.signal.aborted) return;
    this.#isWaiting = true;
    this.#ears.onGone();
    void this.#waitForReturn().catch(() => {});
  }

  async #waitForReturn(): Promise<void> {
    this.#socket?.destroy();
    this.#socket = undefined;
    do {
      await this.#clock.sleep(500, this.#stopped.signal);
    } while (!(await this.#client.isAlive()));
    this.#isWaiting = false;
    this.#ears.onBack();
    this.#listen();
  }

  /** Behind a reverse proxy the connection outlives the homeserver. */
  async #ask(): Promise<void> {
    for (;;) {
      const before = this.#clock.now().getTime();
      await this.#clock.sleep(askEveryMs, this.#stopped.signal);
      const wasFrozen = this.#clock.now().getTime() - before > frozenAfterMs;
      if (wasFrozen || !(await this.#client.isAlive())) this.#noteGone();
    }
  }
}
