import { availableParallelism } from "node:os";
import { SandboxBrowser, type Shot, type ShotOrder } from "../../adapters/sandbox/browser.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { SandboxProvider } from "./sandbox.ts";

/** Browsers of conversations' sandboxes. They take as many pictures at a time as the machine has processors. */
export class Browsers {
  readonly #sandboxes: SandboxProvider;
  readonly #browsers = new Map<string, SandboxBrowser>();
  readonly #inTurn = new InTurn<string>();
  readonly #waiting: (() => void)[] = [];
  #places: number;

  constructor(sandboxes: SandboxProvider, places = availableParallelism()) {
    this.#sandboxes = sandboxes;
    this.#places = places;
  }

  /** Takes a picture in the conversation's sandbox, when it is its turn. See `SandboxBrowser.shoot`. */
  async shoot(conversation: Conversation, order: ShotOrder, signal: AbortSignal): Promise<Shot> {
    const key = JSON.stringify([conversation.agent, conversation.roomId]);
    return this.#inTurn.run([key], async () => {
      await this.#place(signal);
      try {
        const browser = this.#browsers.get(key) ?? new SandboxBrowser(undefined, () => this.#browsers.delete(key));
        this.#browsers.set(key, browser);
        return await browser.shoot(await this.#sandboxes.use(conversation), order, signal);
      } finally {
        this.#places++;
        this.#waiting.shift()?.();
      }
    });
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    await Promise.all([...this.#browsers.values()].map((browser) => browser.end()));
  }

  async #place(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#places <= 0) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const give = (): void => reject(signal.reason);
      this.#waiting.push(resolve);
      signal.addEventListener("abort", give);
      try {
        await promise;
      } catch (error) {
        const at = this.#waiting.indexOf(resolve);
        // Its turn came in the same moment: the next one has it.
        if (at < 0) this.#waiting.shift()?.();
        else this.#waiting.splice(at, 1);
        throw error;
      } finally {
        signal.removeEventListener("abort", give);
      }
    }
    this.#places--;
  }
}
