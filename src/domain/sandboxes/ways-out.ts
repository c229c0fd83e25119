import { proxyEnvironment, proxyPort, SandboxProxy } from "../../adapters/sandbox/proxy.ts";
import { Reach } from "../../adapters/sandbox/reach.ts";
import type { Runner } from "../../adapters/sandbox/runner.ts";
import { RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { Traffic } from "../../adapters/sandbox/traffic.ts";
import type { AgentName } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";

export interface WaysOutParts {
  /** Hosts to which sandboxes may connect; see `isReachEntry`. */
  readonly network: readonly string[];
  /** Those of them that an agent may use; null: all. It can name no others. */
  readonly networkOf: (agent: AgentName) => Promise<readonly string[] | null>;
  readonly log: Log;
}

/** Ways out of sandboxes: a proxy for each that runs, to the hosts that the configuration and the agent's settings both allow. */
export class WaysOut {
  readonly #parts: WaysOutParts;
  readonly #all: Reach;
  readonly #proxies = new WeakMap<Runner, SandboxProxy>();

  constructor(parts: WaysOutParts) {
    this.#parts = parts;
    this.#all = new Reach(parts.network);
  }

  /** Environment of an agent's commands, beside that of the image. */
  async environmentOf(agent: AgentName): Promise<Readonly<Record<string, string>>> {
    if (this.#all.isEmpty) return {};
    return (await this.#parts.networkOf(agent))?.length === 0 ? {} : proxyEnvironment;
  }

  /** Counts of what a sandbox has sent and received since its way was opened. */
  trafficOf(runner: Runner): Traffic | undefined {
    return this.#proxies.get(runner)?.traffic;
  }

  isOpenFor(runner: Runner): boolean {
    return this.#proxies.has(runner);
  }

  /** Opens the way of a sandbox. The agent's settings are looked at anew for every connection. */
  async open(runner: Runner, agent: AgentName): Promise<void> {
    let own: Reach | undefined;
    const proxy = new SandboxProxy({
      reach: { has: (host) => this.#all.has(host) && (own?.has(host) ?? true) },
    });
    this.#proxies.set(runner, proxy);
    if (this.#all.isEmpty) return;
    const admit = async (): Promise<void> => {
      const entries = await this.#parts.networkOf(agent);
      own = entries === null ? undefined : new Reach(entries);
    };
    try {
      await runner.listen(proxyPort, (connection) => {
        connection.on("error", () => {});
        admit().then(
          () => proxy.serve(connection),
          () => connection.destroy(),
        );
      });
    } catch (error) {
      if (!(error instanceof RunnerRefused)) throw error;
      this.#parts.log.warn({ agent }, `a sandbox has no way out: ${error.message}`);
    }
  }
}
