import net from "node:net";
import type { Clock } from "../../base/lib/clock.ts";
import type { MatrixClient } from "./client.ts";

const askEveryMs = 5_000;

export interface WatchEars {
  /** Called once before each `onBack`. */
  readonly onGone: () => void;
  readonly onBack: () => void;
}

/**
 * Notices that the homeserver went away and came back: an idle connection to it ends when its process does, and any
 * request that found nobody tells as well.
 */
export class HomeserverWatch {
  readonly #client: MatrixClient;
  readonly #clock: Clock;
  readonly #address: { host: string; port: number };
  readonly #ears: WatchEars;
  readonly #stopped = new AbortController();
  #socket: net.Socket | undefined;
  #waiting = false;

  constructor(client: MatrixClient, homeserverUrl: string, clock: Clock, ears: WatchEars) {
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
  get reachable(): boolean {
    return !this.#waiting;
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
      // Ending an idle connection is no news; that nobody listens any more is.
      if (wasUp)
        void this.#clock.sleep(200, this.#stopped.signal).then(
          () => this.#listen(),
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
    if (this.#waiting || this.#stopped.signal.aborted) return;
    this.#waiting = true;
    this.#ears.onGone();
    void this.#waitForReturn().catch(() => {});
  }

  async #waitForReturn(): Promise<void> {
    this.#socket?.destroy();
    do {
      await this.#clock.sleep(500, this.#stopped.signal);
    } while (!(await this.#client.isAlive()));
    this.#waiting = false;
    this.#ears.onBack();
    this.#listen();
  }

  /** Behind a reverse proxy the connection outlives the homeserver. */
  async #ask(): Promise<void> {
    for (;;) {
      await this.#clock.sleep(askEveryMs, this.#stopped.signal);
      if (!(await this.#client.isAlive())) this.#noteGone();
    }
  }
}
