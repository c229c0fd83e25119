import { HostError, type SandboxHost } from "../../adapters/sandbox/host.ts";
import { type SandboxSettings, specOf } from "../../adapters/sandbox/open-host.ts";
import { proxyPort, SandboxProxy } from "../../adapters/sandbox/proxy.ts";
import { RenderBrowser, type RenderedPage, type RenderOrder } from "../../adapters/sandbox/render-browser.ts";
import type { OpenSandbox } from "../../adapters/sandbox/run-program.ts";
import { Runner } from "../../adapters/sandbox/runner.ts";
import { LinkLost, RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { HostTraffic } from "../../adapters/sandbox/traffic.ts";
import { afterIdling, type Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { Log } from "../../base/lib/log.ts";
import { doorOf, type LookupAll, OpenDoors } from "../../base/lib/public-address.ts";
import type { SelfTest } from "./self-test.ts";

interface PageRendererParts {
  /** Undefined: there are no containers, by the configuration. */
  readonly host: SandboxHost | undefined;
  readonly settings: Pick<SandboxSettings, "image" | "firstUid" | "limits">;
  readonly selfTest: Pick<SelfTest, "pass">;
  /** Of the container: of this process alone, and the same after a restart. */
  readonly name: string;
  /** Places that pages may be loaded from although they are not public, as `host:port`. */
  readonly allow: readonly string[];
  /** Default: the machine's resolver. */
  readonly lookupAll?: LookupAll;
  readonly clock: Clock;
  readonly log: Log;
}

/** A browser at rest, and the container after it, are ended. */
const idleMs = 60_000;
const patienceMs = 5_000;
/** Every name: the proxy refuses those that are not public by itself. */
const everywhere = { has: () => true };
const noDoors = new OpenDoors([]);

/**
 * Loads pages that are empty without JavaScript, one at a time, in a container of its own. It has no network: its proxy is
 * the only way out, and leads to public addresses alone. What the browser was shown does not outlast the container.
 */
export class PageRenderer {
  readonly #parts: PageRendererParts;
  readonly #allowed: OpenDoors;
  readonly #browser = new RenderBrowser(idleMs);
  readonly #inTurn = new InTurn<"page">();
  #proxy = new SandboxProxy({ reach: everywhere });
  #runner: Runner | undefined;
  #isClear = false;
  #keep = (): void => {};

  constructor(parts: PageRendererParts) {
    this.#parts = parts;
    this.#allowed = new OpenDoors(parts.allow);
  }

  /** Counts of what the page that was loaded last has asked for. */
  traffic(): readonly HostTraffic[] {
    return this.#proxy.traffic.counts();
  }

  /** Rejects with a `UserError` that says why there is no page, or with the signal's reason. */
  render(order: RenderOrder, signal: AbortSignal): Promise<RenderedPage> {
    return this.#inTurn.run(["page"], async () => {
      signal.throwIfAborted();
      this.#keep();
      try {
        await this.#parts.selfTest.pass().catch((error: unknown) => {
          if (!(error instanceof UserError)) throw error;
          throw new UserError("There is no browser here that could load it, as there are no sandboxes.");
        });
        this.#proxy = this.#proxyFor(new URL(order.url));
        return await this.#browser.render(await this.#open(), order, signal);
      } catch (error) {
        if (!(error instanceof HostError || error instanceof LinkLost || error instanceof RunnerRefused)) throw error;
        this.#parts.log.warn(`pages cannot be loaded in a browser: ${messageOf(error)}`);
        await this.#remove();
        throw new UserError("The browser for pages cannot be started now; the log of the bridge says why.");
      } finally {
        this.#keep = afterIdling(2 * idleMs, () => void this.close());
      }
    });
  }

  /** Removes a container that was left behind by a run of this process that was killed. */
  clear(): Promise<void> {
    return this.#inTurn.run(["page"], async () => {
      const { host, name } = this.#parts;
      if (this.#isClear || this.#runner) return;
      await host?.remove(name);
      this.#isClear = true;
    });
  }

  /** Removes the container; the next page makes another. */
  close(): Promise<void> {
    this.#keep();
    return this.#inTurn.run(["page"], () => this.#remove());
  }

  /** A page of the world reaches no place in the house, even if an operator has opened it. */
  #proxyFor(page: URL): SandboxProxy {
    const door = doorOf(page);
    const doors = this.#allowed.has(door) ? new OpenDoors([`${page.hostname}:${door.port}`]) : noDoors;
    const { lookupAll } = this.#parts;
    return new SandboxProxy({ reach: everywhere, doors, ...(lookupAll && { lookupAll }) });
  }

  async #open(): Promise<OpenSandbox> {
    const { clock, host, name, settings } = this.#parts;
    if (!host) throw new HostError("there are no containers");
    if (this.#runner?.isOpen === false) await this.#remove();
    if (!this.#runner) {
      // One of before a restart may hold anything.
      await host.remove(name);
      this.#runner = new Runner({ connect: () => host.connect(name), clock, patienceMs });
      await host.start(await host.create(specOf(settings, name, { "clevernet.purpose": "pages" })));
      await this.#runner.listen(proxyPort, (connection) => this.#proxy.serve(connection));
    }
    return { runner: this.#runner, boot: await this.#runner.boot() };
  }

  async #remove(): Promise<void> {
    const { host, log, name } = this.#parts;
    const runner = this.#runner;
    if (!runner) return;
    this.#runner = undefined;
    // Nothing in the container is asked any more: it may be dead.
    await runner.close();
    await this.#browser.end();
    await host?.remove(name).catch((error: unknown) => log.warn(`the browser for pages stays: ${messageOf(error)}`));
  }
}
