import type { SandboxState } from "../../adapters/sandbox/host.ts";
import { type SandboxSettings, specOf } from "../../adapters/sandbox/open-host.ts";
import { forgetEnded } from "../../adapters/sandbox/run-program.ts";
import { Runner } from "../../adapters/sandbox/runner.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxPlacements } from "../tables/sandbox-placements.ts";
import type { SandboxRow, SandboxTable } from "../tables/sandboxes.ts";
import type { Backups } from "./backups.ts";
import { type HostEntry, HostPool, type PooledHost } from "./host-pool.ts";
import { Placing, type Tell } from "./placing.ts";
import type { RunningSandbox, SandboxProvider } from "./sandbox.ts";
import { SandboxNames } from "./sandbox-names.ts";
import { WaysOut, type WaysOutParts } from "./ways-out.ts";

/** Only a sandbox that nobody has used for so long gives its place to another. Those that work are used more often. */
const spareAfterSeconds = 60;
/** Time in which a running sandbox must be reached. */
const patienceMs = 5_000;
const whileStoppingMs = 200;
/** Whoever wants to use it waits meanwhile. */
const lastBackupSeconds = 40;

export interface SandboxesParts {
  /** None: there are no sandboxes, by the configuration. */
  readonly hosts: readonly HostEntry[];
  readonly settings: SandboxSettings;
  readonly table: SandboxTable;
  readonly placements: SandboxPlacements;
  readonly backups: Backups | undefined;
  /** See `SandboxNames`. */
  readonly homeserver: string;
  readonly networkOf: WaysOutParts["networkOf"];
  readonly tell: Tell;
  readonly clock: Clock;
  readonly log: Log;
}

/** A conversation's sandbox as it is now. */
export interface SandboxStatus extends SandboxRow {
  readonly isRunning: boolean;
  /** False where nothing of it is left: it was removed, and nobody has used it since. */
  readonly isThere: boolean;
  /** Its host does not answer, so nothing is known. */
  readonly isAway: boolean;
}

/** The sandboxes of conversations, each by a name that is made from its conversation. */
export class Sandboxes implements SandboxProvider {
  readonly pool: HostPool;
  readonly names: SandboxNames;
  readonly waysOut: WaysOut;
  readonly placing: Placing;
  readonly #parts: SandboxesParts;
  readonly #runners = new Map<string, { readonly runner: Runner; readonly host: string }>();
  readonly #inTurn = new InTurn<string>();

  constructor(parts: SandboxesParts) {
    const { homeserver, settings, table } = parts;
    this.#parts = parts;
    this.names = new SandboxNames(table, homeserver);
    this.waysOut = new WaysOut({ ...parts, network: settings.network });
    this.pool = new HostPool({ ...parts, spec: specOf(settings, "clevernet", { "clevernet.purpose": "check" }) });
    this.placing = new Placing({ ...parts, pool: this.pool, names: this.names });
  }

  get settings(): SandboxSettings {
    return this.#parts.settings;
  }

  /** False where it is known that there are none to be had. */
  get isOffered(): boolean {
    return this.pool.refusal === undefined;
  }

  async use(conversation: Conversation): Promise<RunningSandbox> {
    const name = await this.names.of(conversation);
    return this.#inTurn.run([name], async () => {
      const { row, at } = await this.placing.place(await this.#claim(conversation, name));
      // Another process may have stopped it, and the end of the link is heard later.
      if (!row.isAwake) await this.#hangUp(name);
      const runner = this.#runnerOf(name, at);
      return at.orTell(async () => {
        if (!runner.isOpen || row.isBare) await this.#wake(row, at, runner);
        await this.#prepare(conversation, runner);
        return { runner, boot: await runner.boot() };
      });
    });
  }

  /** Keeps the sandbox from being idle. `busy`: without anybody's doing, something in it goes on. */
  async touch(conversation: Conversation, how: "used" | "busy" = "used"): Promise<void> {
    const name = await this.names.of(conversation);
    await this.#parts.table[how === "used" ? "touch" : "markBusy"](name);
  }

  /** Sandboxes as they were seen last, without a question to their hosts. */
  get seen(): Pick<SandboxTable, "countAwake" | "find"> {
    return this.#parts.table;
  }

  /** Undefined: the conversation has never used one. */
  async status(conversation: Conversation): Promise<SandboxStatus | undefined> {
    const row = await this.#parts.table.find(conversation);
    if (!row) return undefined;
    const at = this.placing.hostOf(row);
    if (!at) return { ...row, isRunning: false, isThere: true, isAway: true };
    if (row.isAwake && this.#runnerOf(row.name, at).isOpen)
      return { ...row, isRunning: true, isThere: true, isAway: false };
    const found = await at.orTell(() => this.#find(row.name, at));
    const isThere = found !== undefined || row.isBare;
    return { ...row, isRunning: found?.isRunning === true, isThere, isAway: false };
  }

  /** The conversation's sandbox if it runs; it is neither made nor started, and this is no use. */
  async running(conversation: Conversation): Promise<RunningSandbox | undefined> {
    const status = await this.status(conversation);
    const at = status?.isRunning ? this.placing.hostOf(status) : undefined;
    if (!status || !at) return undefined;
    const runner = this.#runnerOf(status.name, at);
    return at.orTell(async () => ({ runner, boot: await runner.boot() }));
  }

  /** Runners of a host's sandboxes to which this process has a stream. */
  runnersOn(host: string): readonly Runner[] {
    const open = [...this.#runners.values()].filter((one) => one.host === host && one.runner.isOpen);
    return open.map(({ runner }) => runner);
  }

  /** Removes the sandbox with all that is in it; the next use makes another. Returns false if there was none. */
  async reset(conversation: Conversation): Promise<boolean> {
    const { backups, table } = this.#parts;
    const name = await this.names.of(conversation);
    return this.#inTurn.run([name], async () => {
      const row = await table.find(conversation);
      if (!row) return false;
      const at = this.placing.hostOf(row) ?? this.placing.refuse(row);
      const isThere = (await at.orTell(() => this.#find(name, at))) !== undefined;
      await at.orTell(() => this.#remove(name, at));
      await backups?.remove(name);
      await table.markEmpty(conversation);
      return isThere;
    });
  }

  /** Ends everything in a sandbox that does not do as it is told; it runs again then, on the same files. */
  async restart(conversation: Conversation): Promise<void> {
    const { table } = this.#parts;
    const name = await this.names.of(conversation);
    await this.#inTurn.run([name], async () => {
      const row = await table.find(conversation);
      const at = row && this.placing.hostOf(row);
      if (!at) return;
      await at.orTell(async () => {
        await this.#halt(row);
        await at.host.start(name);
        await table.markAwake(name);
      });
    });
  }

  /** Stops those that nobody uses. Returns how many that were. */
  async stopIdle(): Promise<number> {
    const { settings, table } = this.#parts;
    const present = this.pool.all.filter(({ awaySeconds }) => awaySeconds === undefined).map(({ name }) => name);
    const rows = await table.claimIdle(settings.idleSeconds, present);
    for (const row of rows) await this.#stop(row);
    return rows.length;
  }

  /** Stops one in which too much was written, whoever uses it. Returns false where somebody stops it already. */
  async stopGreedy(row: SandboxRow): Promise<boolean> {
    if (!(await this.#parts.table.claimGreedy(row.name))) return false;
    await this.#halt(row);
    return true;
  }

  /** Removes a container from a host, with its files. */
  async removeFrom(at: PooledHost, name: string): Promise<void> {
    await this.#inTurn.run([name], () => this.#remove(name, at));
  }

  /** Leaves all as they are: commands go on. */
  async close(): Promise<void> {
    await Promise.all([...this.#runners.values()].map(({ runner }) => runner.close()));
    this.#runners.clear();
  }

  /** Counts a use; a conversation that has none gets its host now. Waits for whoever stops the sandbox. */
  async #claim(conversation: Conversation, name: string): Promise<SandboxRow> {
    const { clock, table } = this.#parts;
    for (;;) {
      const found = await table.use(conversation);
      if (found === "stopping") await clock.sleep(whileStoppingMs);
      else if (found === "new")
        await table.claim(conversation, name, (await this.pool.choose(await table.countAwake())).name);
      else return found;
    }
  }

  async #wake(row: SandboxRow, at: PooledHost, runner: Runner): Promise<void> {
    const { placements, settings, table } = this.#parts;
    const { name } = row;
    const running = await this.#runningBeside(row, at);
    if (!running.includes(name)) {
      await at.selfTest.pass();
      if (running.length + at.starting >= at.runningMost) await this.#makeRoom(running, at);
      at.starting++;
      try {
        // It was here before, and has been elsewhere since.
        if (await placements.forgetStray({ host: at.name, name })) await at.host.remove(name);
        const label = await this.names.label();
        await at.host.start(await at.host.create(specOf(settings, name, { [label.name]: label.value })));
      } finally {
        at.starting--;
      }
    }
    if (row.isBare) await this.placing.restore(name, async () => ({ runner, boot: await runner.boot() }));
    await table.markAwake(name);
  }

  /** Names those that run. The host is asked, which takes a while, only where that may change what is done. */
  async #runningBeside({ isAwake }: SandboxRow, at: PooledHost): Promise<string[]> {
    const count = (await this.#parts.table.countAwake()).get(at.name) ?? 0;
    if (!isAwake && count + at.starting < at.runningMost) return [];
    const ours = await at.look(await this.names.label());
    return ours.filter(({ isRunning }) => isRunning).map(({ id }) => id);
  }

  /** Stops the one that was not used for longest. */
  async #makeRoom(running: readonly string[], { runningMost }: PooledHost): Promise<void> {
    const { settings, table } = this.#parts;
    const row = await table.claimLongestIdle(running, { quiet: spareAfterSeconds, busy: settings.idleSeconds });
    if (row) return this.#stop(row);
    throw new UserError(
      `${runningMost === 1 ? "The only computer is" : `All ${runningMost} computers are`} in use now. Try again in a minute; those who run this bridge can allow more (sandbox.runningMost).`,
    );
  }

  /** Stops one that was claimed: nobody else uses it meanwhile. */
  async #stop(row: SandboxRow): Promise<void> {
    await this.#parts.backups?.keepLast(row.name, () => this.open(row), lastBackupSeconds);
    await this.#halt(row);
  }

  async #halt({ host, name }: SandboxRow): Promise<void> {
    await this.#hangUp(name);
    await this.pool.get(host)?.host.stop(name);
    await this.#parts.table.markStopped(name);
  }

  /** Ends the link to a sandbox: the next use makes another. */
  async #hangUp(name: string): Promise<void> {
    const known = this.#runners.get(name);
    this.#runners.delete(name);
    await known?.runner.close();
  }

  async #remove(name: string, at: PooledHost): Promise<void> {
    if (this.#runners.get(name)?.host === at.name) await this.#hangUp(name);
    await at.host.remove(name);
  }

  /** Ties the way out to a client of a runner, and takes away what an earlier one has left. Once for each. */
  async #prepare({ agent }: Conversation, runner: Runner): Promise<void> {
    if (this.waysOut.isOpenFor(runner)) return;
    await forgetEnded(runner);
    await this.waysOut.open(runner, agent);
  }

  /** Reaches one that runs. @throws UserError, HostError, LinkLost */
  async open(row: SandboxRow): Promise<RunningSandbox> {
    const at = this.placing.hostOf(row) ?? this.placing.refuse(row);
    const runner = this.#runnerOf(row.name, at);
    return { runner, boot: await runner.boot() };
  }

  #runnerOf(name: string, { host, name: hostName }: PooledHost): Runner {
    const { clock } = this.#parts;
    const known = this.#runners.get(name);
    if (known?.host === hostName) return known.runner;
    void known?.runner.close();
    const runner = new Runner({ connect: () => host.connect(name), clock, patienceMs });
    this.#runners.set(name, { runner, host: hostName });
    return runner;
  }

  async #find(name: string, at: PooledHost): Promise<SandboxState | undefined> {
    return (await at.look(await this.names.label())).find(({ id }) => id === name);
  }
}
