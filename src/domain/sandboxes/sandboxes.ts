import { HostError, type SandboxHost, type SandboxSpec, type SandboxState } from "../../adapters/sandbox/host.ts";
import { type SandboxSettings, specOf } from "../../adapters/sandbox/open-host.ts";
import { proxyEnvironment, proxyPort, SandboxProxy } from "../../adapters/sandbox/proxy.ts";
import { Reach } from "../../adapters/sandbox/reach.ts";
import { forgetEnded } from "../../adapters/sandbox/run-program.ts";
import { Runner } from "../../adapters/sandbox/runner.ts";
import { LinkLost, RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { Traffic } from "../../adapters/sandbox/traffic.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type Conversation, digest } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxRow, SandboxTable } from "../tables/sandboxes.ts";
import type { RunningSandbox, SandboxProvider } from "./sandbox.ts";
import { SelfTest } from "./self-test.ts";

/** Only a sandbox that nobody has used for so long gives its place to another. Those that work are used more often. */
const spareAfterSeconds = 60;
/** Time in which a running sandbox must be reached. */
const patienceMs = 5_000;
const whileStoppingMs = 200;
/** Label of all sandboxes of an installation. */
const installationLabel = "clevernet.installation";

export interface SandboxesParts {
  /** Undefined: there are no sandboxes, by the configuration. */
  readonly host: SandboxHost | undefined;
  readonly settings: SandboxSettings;
  readonly table: SandboxTable;
  /** Of the homeserver: a copy of the database that serves another one touches none of our sandboxes. */
  readonly homeserver: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** A conversation's sandbox as it is now. */
export interface SandboxStatus extends SandboxRow {
  readonly isRunning: boolean;
}

/** The sandboxes of conversations, each by a name that is made from its conversation. */
export class Sandboxes implements SandboxProvider {
  readonly selfTest: SelfTest;
  readonly #parts: SandboxesParts;
  readonly #runners = new Map<string, Runner>();
  readonly #proxies = new WeakMap<Runner, SandboxProxy>();
  readonly #reach: Reach;
  readonly #inTurn = new InTurn<string>();
  #installation: Promise<string> | undefined;
  /** Sandboxes that are about to run. */
  #starting = 0;

  constructor(parts: SandboxesParts) {
    this.#parts = parts;
    this.#reach = new Reach(parts.settings.network);
    const spec = specOf(parts.settings, "clevernet", { "clevernet.purpose": "check" });
    this.selfTest = new SelfTest(parts.host, spec, parts.log);
  }

  get settings(): SandboxSettings {
    return this.#parts.settings;
  }

  /** False where it is known that there are none to be had. */
  get isOffered(): boolean {
    return this.selfTest.refusal === undefined;
  }

  /** Environment of commands, beside that of the image. */
  get environment(): Readonly<Record<string, string>> {
    return this.#reach.isEmpty ? {} : proxyEnvironment;
  }

  /** Counts of what a running sandbox has sent and received. */
  trafficOf({ runner }: RunningSandbox): Traffic | undefined {
    return this.#proxies.get(runner)?.traffic;
  }

  async use(conversation: Conversation): Promise<RunningSandbox> {
    const name = await this.#nameOf(conversation);
    return this.#inTurn.run([name], async () => {
      const { clock, table } = this.#parts;
      let found = await table.use(conversation, name);
      for (; !found; found = await table.use(conversation, name)) await clock.sleep(whileStoppingMs);
      // Whoever has stopped it may be another process: that the link is lost is heard later.
      if (!found.isAwake) await this.#hangUp(name);
      const runner = this.#runnerOf(name);
      return this.#orTell(async () => {
        if (!runner.isOpen) await this.#wake(name);
        await this.#prepare(name, runner);
        return { runner, boot: await runner.boot() };
      });
    });
  }

  /** Keeps the sandbox from being idle. */
  async touch(conversation: Conversation): Promise<void> {
    await this.#parts.table.touch(await this.#nameOf(conversation));
  }

  /** Undefined: the conversation has never used one. */
  async status(conversation: Conversation): Promise<SandboxStatus | undefined> {
    const row = await this.#parts.table.find(conversation);
    if (!row) return undefined;
    const isLinked = row.isAwake && this.#runnerOf(row.name).isOpen;
    const isRunning = isLinked || (await this.#orTell(() => this.#find(row.name)))?.isRunning;
    return { ...row, isRunning: isRunning === true };
  }

  /** The conversation's sandbox if it runs; it is neither made nor started, and this is no use. */
  async running(conversation: Conversation): Promise<RunningSandbox | undefined> {
    const status = await this.status(conversation);
    if (!status?.isRunning) return undefined;
    const runner = this.#runnerOf(status.name);
    return this.#orTell(async () => ({ runner, boot: await runner.boot() }));
  }

  /** Removes the sandbox with all that is in it; the next use makes another. Returns false if there was none. */
  async reset(conversation: Conversation): Promise<boolean> {
    const name = await this.#nameOf(conversation);
    return this.#inTurn.run([name], async () => {
      const isThere = (await this.#orTell(() => this.#find(name))) !== undefined;
      await this.#orTell(() => this.#remove(name));
      await this.#parts.table.markEmpty(conversation);
      return isThere;
    });
  }

  /** Ends everything in a sandbox that does not do as it is told; it runs again then, on the same files. */
  async restart(conversation: Conversation): Promise<void> {
    const { table } = this.#parts;
    const host = this.#host;
    const name = await this.#nameOf(conversation);
    await this.#inTurn.run([name], () =>
      this.#orTell(async () => {
        await this.#stop(name);
        await host.start(name);
        await table.markAwake(name);
      }),
    );
  }

  /** Stops those that nobody uses. Returns how many that were. */
  async stopIdle(): Promise<number> {
    const { settings, table } = this.#parts;
    const names = await table.claimIdle(settings.idleSeconds);
    for (const name of names) await this.#stop(name);
    return names.length;
  }

  /** Removes those whose conversation is over. */
  async removeAbandoned(): Promise<void> {
    const { log, table } = this.#parts;
    for (const row of await table.findAbandoned()) {
      log.info({ agent: row.agent, room: row.roomId }, "a sandbox is removed: its conversation is over");
      await this.#inTurn.run([row.name], () => this.#remove(row.name));
      await table.markEmpty(row);
      await table.remove(row);
    }
  }

  /** Names sandboxes of this installation that belong to no conversation. */
  async findOrphans(): Promise<string[]> {
    const ours = await this.#ours();
    const known = await this.#parts.table.names();
    return ours.map(({ id }) => id).filter((name) => !known.has(name));
  }

  async removeOrphan(name: string): Promise<void> {
    this.#parts.log.info({ sandbox: name }, "a sandbox is removed: it belongs to no conversation");
    await this.#inTurn.run([name], () => this.#remove(name));
  }

  /** Leaves all as they are: commands go on. */
  async close(): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.close()));
    this.#runners.clear();
  }

  /** @throws UserError where there is none, or it cannot be used */
  get #host(): SandboxHost {
    const { host } = this.#parts;
    const { refusal } = this.selfTest;
    if (host && refusal === undefined) return host;
    throw new UserError(refusal ?? "There are no computers here.");
  }

  async #wake(name: string): Promise<void> {
    const { settings, table } = this.#parts;
    const host = this.#host;
    const ours = await this.#ours();
    if (!ours.some(({ id, isRunning }) => id === name && isRunning)) {
      await this.selfTest.pass();
      const running = ours.filter(({ isRunning }) => isRunning).map(({ id }) => id);
      if (running.length + this.#starting >= settings.runningMost) await this.#makeRoom(running);
      this.#starting++;
      try {
        const labels = { [installationLabel]: await this.#label() };
        const spec: SandboxSpec = specOf(settings, name, labels);
        await host.start(await host.create(spec));
      } finally {
        this.#starting--;
      }
    }
    await table.markAwake(name);
  }

  /** Stops the one that was not used for longest. */
  async #makeRoom(running: readonly string[]): Promise<void> {
    const { settings, table } = this.#parts;
    const name = await table.claimLongestIdle(running, spareAfterSeconds);
    if (name !== undefined) return this.#stop(name);
    const count = settings.runningMost;
    throw new UserError(
      `${count === 1 ? "The only computer is" : `All ${count} computers are`} in use now. Try again in a minute; those who run this bridge can allow more (sandbox.runningMost).`,
    );
  }

  /** Stops one that was claimed: nobody else uses it meanwhile. */
  async #stop(name: string): Promise<void> {
    await this.#hangUp(name);
    await this.#host.stop(name);
    await this.#parts.table.markStopped(name);
    this.#parts.log.debug({ sandbox: name }, "a sandbox was stopped");
  }

  async #remove(name: string): Promise<void> {
    await this.#hangUp(name);
    await this.#host.remove(name);
  }

  /** Ends the link to a sandbox: the next use makes another. */
  async #hangUp(name: string): Promise<void> {
    const runner = this.#runners.get(name);
    this.#runners.delete(name);
    await runner?.close();
  }

  /** Ties the way out to a client of a runner, and takes away what an earlier one has left. Once for each. */
  async #prepare(name: string, runner: Runner): Promise<void> {
    if (this.#proxies.has(runner)) return;
    const proxy = new SandboxProxy({ reach: this.#reach });
    this.#proxies.set(runner, proxy);
    await forgetEnded(runner);
    if (this.#reach.isEmpty) return;
    try {
      await runner.listen(proxyPort, (connection) => proxy.serve(connection));
    } catch (error) {
      if (!(error instanceof RunnerRefused)) throw error;
      this.#parts.log.warn({ sandbox: name }, `a sandbox has no way out: ${error.message}`);
    }
  }

  #runnerOf(name: string): Runner {
    const { clock } = this.#parts;
    const host = this.#host;
    const known = this.#runners.get(name) ?? new Runner({ connect: () => host.connect(name), clock, patienceMs });
    this.#runners.set(name, known);
    return known;
  }

  async #find(name: string): Promise<SandboxState | undefined> {
    return (await this.#ours()).find(({ id }) => id === name);
  }

  async #ours(): Promise<readonly SandboxState[]> {
    return this.#host.find({ name: installationLabel, value: await this.#label() });
  }

  /** Lower-case letters and digits, as names of sandboxes have to be. */
  async #nameOf({ agent, roomId }: Conversation): Promise<string> {
    const id = digest("sandbox", await this.#label(), agent, roomId);
    return `clevernet-${Buffer.from(id, "base64url").toString("hex").slice(0, 24)}`;
  }

  async #label(): Promise<string> {
    this.#installation ??= this.#parts.table.installation().catch((error: unknown) => {
      this.#installation = undefined;
      throw error;
    });
    return digest("installation", await this.#installation, this.#parts.homeserver);
  }

  /** People are told that it cannot be done, and those who run the bridge why. */
  async #orTell<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof HostError || error instanceof LinkLost)) throw error;
      // It may be that nothing can be done on this host.
      if (error instanceof HostError) await this.selfTest.pass();
      const remedy = error instanceof HostError && error.remedy !== undefined ? ` ${error.remedy}.` : "";
      this.#parts.log.warn(`a sandbox: ${messageOf(error)}${remedy}`);
      throw new UserError(
        `The computer of this conversation cannot be reached now. Try again in a minute; the log of the bridge says why.${remedy}`,
      );
    }
  }
}
