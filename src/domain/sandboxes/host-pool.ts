import { HostError, type SandboxHost, type SandboxSpec, type SandboxState } from "../../adapters/sandbox/host.ts";
import { LinkLost } from "../../adapters/sandbox/runner-link.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { SelfTest } from "./self-test.ts";

/** A host that has not answered so many times is away. */
const failuresMost = 3;

/** A host as the pool gets it. */
export interface HostEntry {
  readonly name: string;
  readonly host: SandboxHost;
  readonly runningMost: number;
}

export interface HostPoolParts {
  readonly hosts: readonly HostEntry[];
  /** Of the sandbox by which a host is tested. */
  readonly spec: SandboxSpec;
  readonly clock: Clock;
  readonly log: Log;
}

type Label = Parameters<SandboxHost["find"]>[0];

/** One host, and whether it can be used. */
export class PooledHost implements HostEntry {
  readonly name: string;
  readonly host: SandboxHost;
  readonly runningMost: number;
  readonly selfTest: SelfTest;
  /** Sandboxes that are about to run there. */
  starting = 0;
  readonly #clock: Clock;
  readonly #log: Log;
  #failures = 0;
  #awaySince: number | undefined;

  constructor({ name, host, runningMost }: HostEntry, parts: Omit<HostPoolParts, "hosts">) {
    this.name = name;
    this.host = host;
    this.runningMost = runningMost;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.selfTest = new SelfTest({ ...parts, host });
  }

  /** It has not answered several times; undefined while it does. */
  get awaySeconds(): number | undefined {
    return this.#awaySince === undefined ? undefined : (this.#clock.monotonic() - this.#awaySince) / 1_000;
  }

  /**
   * Lists its sandboxes. Whether it can do that decides whether it is away.
   * @throws HostError
   */
  async look(label: Label): Promise<readonly SandboxState[]> {
    try {
      const found = await this.host.find(label);
      if (this.#awaySince !== undefined) this.#log.info({ host: this.name }, "a host of sandboxes answers again");
      this.#failures = 0;
      this.#awaySince = undefined;
      return found;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#failures++;
      if (this.#failures >= failuresMost && this.#awaySince === undefined) {
        this.#awaySince = this.#clock.monotonic();
        this.#log.warn({ host: this.name }, `a host of sandboxes is away: ${messageOf(error)}`);
      }
      throw error;
    }
  }

  /** Tells people that something cannot be done, where the host or a runner on it refuses, and those who run the bridge why. */
  async orTell<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof HostError || error instanceof LinkLost)) throw error;
      // It may be that nothing can be done on this host.
      if (error instanceof HostError) await this.selfTest.pass();
      const remedy = error instanceof HostError && error.remedy !== undefined ? ` ${error.remedy}.` : "";
      this.#log.warn({ host: this.name }, `a sandbox: ${messageOf(error)}${remedy}`);
      throw new UserError(
        `The computer of this conversation cannot be reached now. Try again in a minute; the log of the bridge says why.${remedy}`,
      );
    }
  }

  /** Room that is left on it, as a part of all that it has. */
  roomBeside(running: number): number {
    return (this.runningMost - running) / this.runningMost;
  }
}

/** Hosts on which sandboxes are made, in the order of the configuration. */
export class HostPool {
  readonly all: readonly PooledHost[];
  readonly #off: SelfTest | undefined;

  constructor({ hosts, ...parts }: HostPoolParts) {
    this.all = hosts.map((host) => new PooledHost(host, parts));
    this.#off = hosts.length === 0 ? new SelfTest({ ...parts, host: undefined }) : undefined;
  }

  get(name: string): PooledHost | undefined {
    return this.all.find((host) => host.name === name);
  }

  /** Says why there are no sandboxes on any of them; undefined where there are, or as long as that is not known. */
  get refusal(): string | undefined {
    if (this.#off) return this.#off.refusal;
    return this.all.every(({ selfTest }) => selfTest.refusal !== undefined) ? this.all[0]?.selfTest.refusal : undefined;
  }

  /** Begins the tests that are due. */
  start(): void {
    for (const { selfTest } of this.all) selfTest.start();
  }

  /** Waits for the tests. @throws UserError where none was passed */
  async pass(): Promise<void> {
    await Promise.allSettled(this.all.map(({ selfTest }) => selfTest.pass()));
    if (this.refusal !== undefined) throw new UserError(this.refusal);
  }

  /**
   * Chooses the host for another sandbox: of those that have passed their test and are not away, the one with most room.
   * @param running sandboxes that run, by their host
   * @throws UserError where there is none
   */
  async choose(running: ReadonlyMap<string, number>): Promise<PooledHost> {
    const isReady = ({ awaySeconds, selfTest }: PooledHost) => selfTest.isPassed && awaySeconds === undefined;
    if (!this.all.some(isReady)) await this.pass();
    const roomOf = (host: PooledHost) => host.roomBeside(running.get(host.name) ?? 0);
    const [best] = this.all.filter(isReady).sort((a, b) => roomOf(b) - roomOf(a));
    if (best) return best;
    throw new UserError("No machine for computers answers now. Try again in a minute; the log of the bridge says why.");
  }
}
