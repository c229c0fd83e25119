import type { BackupStore } from "../../adapters/sandbox/backup-store.ts";
import { clear, runProgram } from "../../adapters/sandbox/run-program.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxPlacements } from "../tables/sandbox-placements.ts";
import type { RunningSandbox } from "./sandbox.ts";

const megabyte = 1024 * 1024;
const restoreSeconds = 280;
/** Done inside, as the user of its files: an archive leads nowhere, whatever is in it. */
const pack = ["/bin/sh", "-c", "exec tar -C /workspace -cf - . --use-compress-program='gzip -1'"] as const;
const unpack = ["/usr/bin/env", "tar", "-C", "/workspace", "-xzf", "-"] as const;
/** Codes of tar: all is packed, a file has changed meanwhile, a file is closed to it. The archive holds the others. */
const packedCodes = [0, 1, 2];

interface BackupsParts {
  readonly store: BackupStore;
  readonly table: SandboxPlacements;
  readonly maxMegabytes: number;
  readonly log: Log;
}

/** Archives of workspaces, from which a sandbox is made anew on another host. They come and go on the runner's stream. */
export class Backups {
  readonly #parts: BackupsParts;

  constructor(parts: BackupsParts) {
    this.#parts = parts;
  }

  /** Backs up a sandbox that was claimed for it. One that cannot be is told in the log, and keeps its earlier backup. */
  async keep(name: string, open: () => Promise<RunningSandbox>, seconds: number): Promise<void> {
    const { log, store, table } = this.#parts;
    try {
      await store.write(name, this.#archiveOf(await open(), seconds));
      await table.markBackedUp(name);
    } catch (error) {
      log.warn({ sandbox: name }, `the files of a sandbox were not backed up: ${messageOf(error)}`);
    }
  }

  /** Backs up a sandbox that is to be stopped, where something may have changed. */
  async keepLast(name: string, open: () => Promise<RunningSandbox>, seconds: number): Promise<void> {
    if (await this.#parts.table.beginBackup(name)) await this.keep(name, open, seconds);
  }

  /** Puts the files of the backup into a new sandbox. */
  async restore(name: string, sandbox: RunningSandbox): Promise<void> {
    const input = await this.#parts.store.read(name);
    const order = { argv: unpack, input, seconds: restoreSeconds, outputMost: 1_000 };
    const { code, stderr } = await runProgram(sandbox, order);
    if (code !== 0) this.#parts.log.warn({ sandbox: name }, `not all of a backup could be restored: ${stderr}`);
  }

  async remove(name: string): Promise<void> {
    await this.#parts.store.remove(name);
  }

  async *#archiveOf({ boot, runner }: RunningSandbox, seconds: number): AsyncGenerator<Buffer> {
    const most = this.#parts.maxMegabytes * megabyte;
    const id = `own-${secret(8)}`;
    await runner.start({ id, boot, argv: pack, seconds, isWhole: true });
    try {
      let size = 0;
      const output = runner.follow({ id, boot });
      for (;;) {
        const { value, done } = await output.next();
        if (done) {
          if (value.reason === "ended" && value.code !== null && packedCodes.includes(value.code)) return;
          throw new UserError(`the archive was not finished (${value.reason})`);
        }
        if (value.stream === "stderr") continue;
        size += value.data.length;
        if (size > most)
          throw new UserError(`they take more than ${this.#parts.maxMegabytes} MB (sandbox.backups.maxMegabytes)`);
        yield value.data;
      }
    } finally {
      void clear(runner, id);
    }
  }
}
