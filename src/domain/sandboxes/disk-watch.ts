import { HostError, type WorkspaceSize } from "../../adapters/sandbox/host.ts";
import type { DiskLimits } from "../../adapters/sandbox/limits.ts";
import { LinkLost, RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { SandboxRow, SandboxTable } from "../tables/sandboxes.ts";
import type { PooledHost } from "./host-pool.ts";
import type { Tell } from "./placing.ts";
import type { Sandboxes } from "./sandboxes.ts";

const roundMs = 5_000;
/** Workspaces are measured at least so often while something runs: one may grow while another shrinks. */
const measureMs = 600_000;
/** They are measured when the disk has less room by this part of what one of them may take. */
const step = 1 / 4;
/** More than a few notes that somebody writes to look what can be removed. */
const slack: WorkspaceSize = { bytes: 4 << 20, files: 200 };
const megabyte = 1 << 20;
/** Room that a file takes besides its content, about. */
const fileBytes = 4_096;
const nothing: WorkspaceSize = { bytes: 0, files: 0 };

export interface DiskWatchParts {
  readonly sandboxes: Pick<Sandboxes, "pool" | "runnersOn" | "stopGreedy">;
  readonly table: Pick<SandboxTable, "awakeOn">;
  readonly limits: DiskLimits;
  readonly tell: Tell;
  readonly clock: Clock;
  readonly log: Log;
}

/** Room that a disk has. */
interface Room {
  readonly bytes: number;
  readonly files: number;
}

interface Measured {
  readonly row: SandboxRow;
  readonly size: WorkspaceSize;
}

/**
 * Watches the disks on which workspaces are: a file system alone sets them no limit. While sandboxes run, it asks every few
 * seconds for the room that is left, which costs nothing, and measures the workspaces when that has shrunk. One that is too
 * large is stopped; so is, where the disk is almost full and still fills, the one that has grown most. Their files stay.
 */
export class DiskWatch {
  readonly #parts: DiskWatchParts;
  readonly #rounds: Rounds;
  /** Most room that was seen since workspaces were measured, by host. */
  readonly #before = new Map<string, Room & { readonly at: number }>();
  /** Room at the last round, by host. */
  readonly #last = new Map<string, Room>();
  /** Sizes at the last look, by sandbox. */
  readonly #sizes = new Map<string, WorkspaceSize>();

  constructor(parts: DiskWatchParts) {
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  start(): void {
    const { log } = this.#parts;
    this.#rounds.start(async () => {
      await this.round().catch((error: unknown) => log.warn(`disks are looked at later: ${messageOf(error)}`));
      return roundMs;
    });
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  async round(): Promise<void> {
    for (const at of this.#parts.sandboxes.pool.all) {
      const room = await this.#roomOn(at.name);
      if (!room) continue;
      const isFull = this.#isFull(room);
      const last = this.#last.get(at.name) ?? room;
      this.#last.set(at.name, room);
      if (!isFull && !this.#hasShrunk(at.name, room)) continue;
      const measured = await this.#measure(at);
      this.#before.set(at.name, { ...room, at: this.#parts.clock.monotonic() });
      await this.#stopLarge(measured);
      const isShrinking = last.bytes - room.bytes > slack.bytes || last.files - room.files > slack.files;
      const now = isFull && isShrinking ? await this.#roomOn(at.name) : undefined;
      if (now && this.#isFull(now)) await this.#stopMost(measured);
      for (const { row, size } of measured) this.#sizes.set(row.name, size);
    }
  }

  /** All workspaces of a host are on one disk: any of them knows. Undefined: nothing runs that this process has a stream to. */
  async #roomOn(host: string): Promise<Room | undefined> {
    for (const runner of this.#parts.sandboxes.runnersOn(host)) {
      try {
        const { bytes, files } = await runner.disk();
        return { bytes, files: files ?? Number.MAX_SAFE_INTEGER };
      } catch (error) {
        // One of an older image does not know it; another has just ended.
        if (!(error instanceof RunnerRefused || error instanceof LinkLost)) throw error;
      }
    }
    return undefined;
  }

  #isFull({ bytes, files }: Room): boolean {
    const { freeFiles, freeMegabytes } = this.#parts.limits;
    return bytes < freeMegabytes * megabyte || files < freeFiles;
  }

  #hasShrunk(host: string, { bytes, files }: Room): boolean {
    const { clock, limits } = this.#parts;
    const before = this.#before.get(host) ?? { bytes, files, at: clock.monotonic() };
    const most = { bytes: Math.max(before.bytes, bytes), files: Math.max(before.files, files) };
    this.#before.set(host, { ...most, at: before.at });
    return (
      clock.monotonic() - before.at > measureMs ||
      most.bytes - bytes >= limits.workspaceMegabytes * megabyte * step ||
      most.files - files >= limits.workspaceFiles * step
    );
  }

  async #measure(at: PooledHost): Promise<Measured[]> {
    const { log, table } = this.#parts;
    const measured: Measured[] = [];
    for (const row of await table.awakeOn(at.name)) {
      const size = await at.host.measure(row.name).catch((error: unknown) => {
        if (!(error instanceof HostError)) throw error;
        log.debug({ sandbox: row.name }, `a workspace is not measured: ${messageOf(error)}`);
        return undefined;
      });
      if (size) measured.push({ row, size });
    }
    return measured;
  }

  /** Stops those that are too large. One that was so at the last look may run, to be cleared, as long as it does not grow. */
  async #stopLarge(measured: readonly Measured[]): Promise<void> {
    const { workspaceFiles, workspaceMegabytes } = this.#parts.limits;
    for (const { row, size } of measured) {
      const isLarge = size.bytes > workspaceMegabytes * megabyte || size.files > workspaceFiles;
      const before = this.#sizes.get(row.name);
      const wasLarge = before && (before.bytes > workspaceMegabytes * megabyte || before.files > workspaceFiles);
      const hasGrown =
        !before || size.bytes > before.bytes + slack.bytes || size.files > before.files + slack.files || !wasLarge;
      if (!isLarge || !hasGrown) continue;
      await this.#stop(
        row,
        `My computer here was stopped: its files take ${sizeOf(size)}, and may take ${workspaceMegabytes} MB in ${workspaceFiles} files.`,
      );
    }
  }

  /**
   * Stops the one that has grown most since the last look. A file without a name is not measured: if the disk goes on filling,
   * the next round stops another.
   */
  async #stopMost(measured: readonly Measured[]): Promise<void> {
    const weight = ({ bytes, files }: WorkspaceSize) => bytes + files * fileBytes;
    const growth = ({ row, size }: Measured) => weight(size) - weight(this.#sizes.get(row.name) ?? nothing);
    const [most] = [...measured].sort((a, b) => growth(b) - growth(a));
    if (!most) return;
    this.#parts.log.error(
      { host: most.row.host },
      "the disk of sandboxes is almost full: the sandbox that has grown most is stopped",
    );
    await this.#stop(
      most.row,
      `My computer here was stopped: the disk of its machine is almost full, and its files have grown most (${sizeOf(most.size)}).`,
    );
  }

  async #stop(row: SandboxRow, why: string): Promise<void> {
    const { clock, log, sandboxes, tell } = this.#parts;
    if (!(await sandboxes.stopGreedy(row))) return;
    log.warn(
      { agent: row.agent, room: row.roomId, sandbox: row.name },
      "a sandbox was stopped: it has written too much",
    );
    const text = `${why} They are kept: remove what is not needed, with \`rm\`, or reset the computer.`;
    await tell(row, text, digest("sandbox disk", row.name, clock.now().toISOString()));
  }
}

const sizeOf = ({ bytes, files }: WorkspaceSize): string => `${Math.ceil(bytes / megabyte)} MB in ${files} files`;
