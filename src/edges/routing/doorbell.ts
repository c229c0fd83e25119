import type { Notifier } from "../../adapters/database/notify.ts";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SoleBridge } from "./sole-bridge.ts";

interface DoorbellParts {
  readonly client: MatrixClient;
  readonly sole: Pick<SoleBridge, "ask">;
  readonly notifier: Notifier;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The homeserver pushes. */
  readonly onAnswered: () => void;
}

const eventType = "org.clevernet.doorbell";
/** Without an echo within this time the homeserver does not push, and is asked again. */
const patienceMs = 8_000;

/**
 * Makes the homeserver send what it holds back, at once instead of after up to 512 seconds. A ping is enough while it
 * knows that we were away; after its own restart it begins to push only when something concerns us, and a state event
 * of the bot's own does. That event comes back to us: until it has, the homeserver is pinged again.
 */
export class Doorbell {
  readonly #client: MatrixClient;
  readonly #sole: Pick<SoleBridge, "ask">;
  readonly #notifier: Notifier;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #serverName: string;
  readonly #onAnswered: () => void;
  readonly #stopped = new AbortController();
  #heard = Promise.withResolvers<void>();
  #ringing = false;

  constructor({ client, sole, notifier, serverName, clock, log, onAnswered }: DoorbellParts) {
    this.#client = client;
    this.#sole = sole;
    this.#notifier = notifier;
    notifier.on("doorbell", (word) => word && this.#heard.resolve());
    this.#clock = clock;
    this.#log = log;
    this.#serverName = serverName;
    this.#onAnswered = onAnswered;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Looks for the doorbell's echo among pushed events. It may come to another process than the one that rang. */
  listen(events: readonly unknown[]): void {
    if (!events.some((event) => isObject(event) && event.type === eventType)) return;
    this.#heard.resolve();
    this.#notifier.tell("doorbell");
  }

  /** Resolves when the homeserver pushes. Never throws: what is not pushed is found by the sweep. */
  async ring(): Promise<void> {
    if (this.#ringing) return;
    this.#ringing = true;
    this.#heard = Promise.withResolvers<void>();
    for (let rung = false; !this.#stopped.signal.aborted; ) {
      // A ping answers at once, where the homeserver knows that we were away.
      [rung] = await Promise.all([rung || this.#sendState(), this.#sole.ask()]);
      const tooLong = this.#clock.sleep(patienceMs, this.#stopped.signal).then(
        () => false,
        () => true,
      );
      if (await Promise.race([this.#heard.promise.then(() => true), tooLong])) {
        this.#onAnswered();
        break;
      }
      this.#log.warn("the homeserver does not push yet; it is asked again");
    }
    this.#ringing = false;
  }

  async #sendState(): Promise<boolean> {
    const bot = { userId: this.#client.botUserId };
    try {
      const rung = { at: this.#clock.now().getTime() };
      const room = { preset: "private_chat", name: "Clevernet's doorbell" };
      const roomId = await this.#client.ownRoom("clevernet_doorbell", this.#serverName, room);
      await this.#client.sendState(bot, roomId, { type: eventType, stateKey: "", content: rung });
      return true;
    } catch (error) {
      this.#log.info(`the doorbell could not be rung: ${messageOf(error)}`);
      return false;
    }
  }
}
