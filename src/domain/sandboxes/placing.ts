import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type Conversation, digest } from "../../base/lib/ids.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxPlacements } from "../tables/sandbox-placements.ts";
import type { SandboxRow, SandboxTable } from "../tables/sandboxes.ts";
import type { Backups } from "./backups.ts";
import type { HostPool, PooledHost } from "./host-pool.ts";
import type { RunningSandbox } from "./sandbox.ts";
import type { SandboxNames } from "./sandbox-names.ts";

/** Says something in a conversation's room, as its agent; once for each key. */
export type Tell = (conversation: Conversation, text: string, key: string) => Promise<void>;

/** A sandbox whose host was away for so long is made anew on another one, from its backup. */
const movedAfterSeconds = 300;
const waitMs = 200;

interface PlacingParts {
  readonly pool: HostPool;
  readonly names: SandboxNames;
  readonly table: SandboxTable;
  readonly placements: SandboxPlacements;
  readonly backups: Backups | undefined;
  readonly tell: Tell;
  readonly clock: Clock;
  readonly log: Log;
}

/** A sandbox, and the host that it is on. */
interface Placed {
  readonly row: SandboxRow;
  readonly at: PooledHost;
}

/**
 * Hosts on which sandboxes are. Each is chosen once, and stands in the database: all processes go by what stands there. Only
 * from a host that is away a sandbox is moved.
 */
export class Placing {
  readonly #parts: PlacingParts;
  #away = new Set<string>();

  constructor(parts: PlacingParts) {
    this.#parts = parts;
  }

  /** The sandbox's host; undefined while it is away, and where there is no such host any more. The only one is never away. */
  hostOf({ host }: SandboxRow): PooledHost | undefined {
    const { pool } = this.#parts;
    const at = pool.get(host);
    return at && (pool.all.length === 1 || at.awaySeconds === undefined) ? at : undefined;
  }

  /**
   * Finds the host of a sandbox that is to be used. After a while that is another one, where there is a backup.
   * @throws UserError while it has to wait
   */
  async place(row: SandboxRow): Promise<Placed> {
    const at = this.hostOf(row);
    if (at) {
      if (at.selfTest.refusal !== undefined) throw new UserError(at.selfTest.refusal);
      return { row, at };
    }
    const awaySeconds = this.#parts.pool.get(row.host)?.awaySeconds;
    if (row.backedUpAt === null || (awaySeconds !== undefined && awaySeconds < movedAfterSeconds)) this.refuse(row);
    return this.#move(row);
  }

  /** Places a conversation's sandbox on another host now. @throws UserError where there is none, or its host answers */
  async move(conversation: Conversation): Promise<Placed> {
    const row = await this.#parts.table.find(conversation);
    if (!row) throw new UserError("There is no computer here yet.");
    if (this.hostOf(row)) throw new UserError("The machine of this computer answers: the computer stays there.");
    return this.#move(row);
  }

  /** Takes the files of a sandbox that was placed anew from its backup. Waits for whoever does it already. */
  async restore(name: string, open: () => Promise<RunningSandbox>): Promise<void> {
    const { backups, clock, placements } = this.#parts;
    for (;;) {
      const claim = await placements.claimRestore(name);
      if (claim === "done") return;
      if (claim === "taken") {
        await clock.sleep(waitMs);
        continue;
      }
      let isDone = false;
      try {
        await backups?.restore(name, await open());
        isDone = true;
      } finally {
        await placements.endRestore(name, isDone);
      }
      return;
    }
  }

  /** @throws UserError that says why the sandbox has to wait, and for how long */
  refuse({ backedUpAt, host }: SandboxRow): never {
    const { clock, pool } = this.#parts;
    const where = pool.get(host) ? "that does not answer now" : "that is not in the configuration any more";
    const age = backedUpAt && this.#ageText(backedUpAt, clock.now());
    throw new UserError(
      `The computer of this conversation is on a machine ${where} (${host}). ${
        age
          ? `In a few minutes, or at once with \`!sandbox move\`, it is made anew on another one, with its files as they were ${age} ago.`
          : "Try again in a minute. There is no backup of its files: `!sandbox move` makes an empty one on another machine."
      }`,
    );
  }

  /** Looks which hosts answer, what is on them, and tells conversations whose host has gone. */
  async look(): Promise<void> {
    const { log, names, pool, table } = this.#parts;
    const label = await names.label();
    for (const at of pool.all) {
      const found = await at.look(label).catch((error: unknown) => {
        log.debug({ host: at.name }, `a host of sandboxes does not answer: ${messageOf(error)}`);
        return undefined;
      });
      if (found) {
        this.#away.delete(at.name);
        const hosts = await table.hosts();
        for (const { id, isRunning } of found) {
          const is = hosts.get(id);
          if (is !== undefined && is !== at.name) await this.#keepStray(at, id, isRunning);
        }
        await this.#removeStrays(at);
      } else if (at.awaySeconds !== undefined && pool.all.length > 1 && !this.#away.has(at.name)) {
        this.#away.add(at.name);
        await this.#sayAway(at);
      }
    }
  }

  async #move(row: SandboxRow): Promise<Placed> {
    const { clock, log, placements, pool, table, tell } = this.#parts;
    const to = await pool.choose(await table.countAwake());
    const moved = await placements.move(row.name, row.host, to.name);
    const now = moved ?? (await table.find(row));
    const at = now && this.hostOf(now);
    if (!now || !at) throw new UserError("The computer of this conversation is being moved: try again in a moment.");
    if (moved) {
      log.warn({ agent: row.agent, from: row.host, to: to.name }, "a sandbox is placed on another host");
      const files = row.backedUpAt
        ? `Its files are as they were ${this.#ageText(row.backedUpAt, clock.now())} ago: what was written since is missing, and nothing runs on it`
        : "It is empty, since there was no backup of its files";
      const text = `My computer here is on another machine now: the one that it was on does not answer. ${files}.`;
      await tell(row, text, digest("sandbox moved", row.name, row.host, row.usedAt.toISOString()));
    }
    return { row: now, at };
  }

  /** Conversations that were at work there hear of it at once. */
  async #sayAway(at: PooledHost): Promise<void> {
    const { table, tell } = this.#parts;
    for (const row of await table.awakeOn(at.name)) {
      const text =
        "The machine of my computer here does not answer now. I can run no commands until it does, or until the computer is moved.";
      await tell(row, text, digest("sandbox away", row.name, at.name, row.usedAt.toISOString()));
    }
  }

  /** Stops a container whose conversation is elsewhere, and keeps its files for a while. */
  async #keepStray(at: PooledHost, name: string, isRunning: boolean): Promise<void> {
    await this.#parts.placements.addStray({ host: at.name, name });
    if (isRunning) await at.host.stop(name);
  }

  async #removeStrays(at: PooledHost): Promise<void> {
    const { log, placements, table } = this.#parts;
    for (const name of await placements.oldStrays(at.name)) {
      // It may have been moved back.
      if ((await table.hosts()).get(name) !== at.name) {
        log.info({ host: at.name, sandbox: name }, "a container is removed: its conversation is on another host");
        await at.host.remove(name);
      }
      await placements.forgetStray({ host: at.name, name });
    }
  }

  #ageText(at: Date, now: Date): string {
    return lengthText(Math.max(1, (now.getTime() - at.getTime()) / 1_000));
  }
}
