import type { Notifier } from "../../adapters/database/notify.ts";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SoleBridge } from "./sole-bridge.ts";

interface DoorbellParts {
  readonly client: Pick<MatrixClient, "botUserId" | "ownRoom" | "sendState">;
  readonly sole: Pick<SoleBridge, "ask">;
  readonly notifier: Pick<Notifier, "on" | "tell">;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The homeserver pushes what it held back; called again as long as it does. */
  readonly onHeldBack: () => void;
}

const eventType = "org.clevernet.doorbell";
/** Without an echo within this time the homeserver does not push, and is asked again. */
const patienceMs = 8_000;
/** Age from which on an event counts as held back before it was pushed. */
const lateMs = 5_000;

/** Meaning of pushed events, as processes tell it each other. */
type Word = "echo" | "late";

/**
 * Makes the homeserver send what it holds back, at once instead of after up to 512 seconds. A ping is enough while it
 * knows that we were away; after its own restart it begins to push only when something concerns us, and a state event
 * of the bot's own does. That event comes back to us: until it has, the homeserver is pinged again, and now and then sent
 * another one. The echo of the first may be lost, with the homeserver's process or on its way between ours.
 */
export class Doorbell {
  readonly #client: DoorbellParts["client"];
  readonly #sole: DoorbellParts["sole"];
  readonly #notifier: DoorbellParts["notifier"];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #serverName: string;
  readonly #onHeldBack: () => void;
  readonly #stopped = new AbortController();
  #heard = Promise.withResolvers<void>();
  #isRinging = false;
  #round = 1;
  /** Round in which the next state event is sent. */
  #sendsIn = 1;

  constructor({ client, sole, notifier, serverName, clock, log, onHeldBack }: DoorbellParts) {
    this.#client = client;
    this.#sole = sole;
    this.#notifier = notifier;
    notifier.on("doorbell", (words = []) => this.#hear(words));
    this.#clock = clock;
    this.#log = log;
    this.#serverName = serverName;
    this.#onHeldBack = onHeldBack;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Looks for the doorbell's echo among pushed events, and for late ones. They may come to another process than ours. */
  listen(events: readonly unknown[]): void {
    const words = [...new Set(events.filter(isObject).flatMap(meaningsOf))];
    if (words.length === 0) return;
    this.#hear(words);
    this.#notifier.tell("doorbell", words);
  }

  #hear(words: readonly string[]): void {
    if (words.includes("echo")) this.#heard.resolve();
    if (words.includes("late")) this.#onHeldBack();
  }

  /** Resolves when the homeserver pushes. Never throws: what is not pushed is found by the sweep. */
  async ring(): Promise<void> {
    [this.#round, this.#sendsIn] = [1, 1];
    if (this.#isRinging) return;
    this.#isRinging = true;
    this.#heard = Promise.withResolvers<void>();
    for (; !this.#stopped.signal.aborted; this.#round++) {
      // A ping answers at once, where the homeserver knows that we were away.
      const [isSent] = await Promise.all([this.#round >= this.#sendsIn && this.#sendState(), this.#sole.ask()]);
      if (isSent) this.#sendsIn = 2 * this.#round;
      const patience = this.#clock.sleep(patienceMs, this.#stopped.signal);
      const tooLong = patience.then(
        () => false,
        () => false,
      );
      const isHeard = await Promise.race([this.#heard.promise.then(() => true), tooLong]);
      if (this.#stopped.signal.aborted) break;
      if (isHeard) {
        this.#onHeldBack();
        break;
      }
      this.#log.warn("the homeserver does not push yet; it is asked again");
    }
    this.#isRinging = false;
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

function meaningsOf({ type, unsigned }: Readonly<Record<string, unknown>>): Word[] {
  const age = isObject(unsigned) ? Number(unsigned.age) : 0;
  return [...(type === eventType ? ["echo" as const] : []), ...(age > lateMs ? ["late" as const] : [])];
}
