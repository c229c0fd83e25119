import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { type OpenSandbox, runProgram } from "./run-program.ts";

/** A file, a folder or something else in a workspace. */
const entrySchema = z.object({
  /** From the workspace on: `/src/app.js`; `/` is the workspace. */
  path: z.string().max(8_192),
  /** A link is followed when it is read; a listing names it. */
  kind: z.enum(["file", "folder", "link", "fifo", "socket", "device"]),
  size: z.number().int().min(0),
  /** Seconds since 1970. */
  at: z.number(),
  /** Another one after every change. */
  mark: z.number().int().min(1),
  /** Things in a folder whose names are no text. */
  hidden: z.number().int().min(0).optional(),
});
export type WorkspaceEntry = z.output<typeof entrySchema>;

const refusalSchema = z.object({
  error: z.string().max(100),
  kind: z.string().max(20).optional(),
  size: z.number().optional(),
  mark: z.number().int().optional(),
});
const lengthSchema = z.object({ bytes: z.number().int().min(0) });
const goneSchema = z.object({ gone: z.array(z.string()), files: z.number().int().min(0) });

/** Somebody else has changed it: another mark is there than was expected, 0 for none. */
export class OtherMark extends Error {
  override readonly name = "OtherMark";
  readonly mark: number;

  constructor(mark: number) {
    super(`the file has the mark ${mark}`);
    this.mark = mark;
  }
}

export interface WorkspaceFile {
  readonly entry: WorkspaceEntry;
  readonly content: Buffer;
}

/** Folder that it is, in a sandbox. */
const workspaceFolder = "/workspace";

const program = readFileSync(join(import.meta.dirname, "programs/files.py"), "utf8");
const secondsMost = 60;
const answerMost = 64 << 20;
const headMost = 64 * 1_024;
/** Files that one program reads. */
const readAtOnce = 100;
const argumentMost = 32 * 1_024;

/**
 * The files in a sandbox, as the user has them who runs its commands. What is done to them is done inside, where a link,
 * a fifo or a device leads to nothing of ours. Paths begin with `/`, the workspace. A file that is not there is
 * undefined; whatever else does not work throws a `UserError` that says what to do.
 */
export class Workspace {
  readonly #sandbox: OpenSandbox;

  constructor(sandbox: OpenSandbox) {
    this.#sandbox = sandbox;
  }

  async stat(path: string): Promise<WorkspaceEntry | undefined> {
    const found = await this.#ask({ op: "stat", path });
    return found && this.#entry(found.head);
  }

  /** Content from an offset on. `isWhole`: refused where it is more than `most` bytes. */
  async read(
    path: string,
    {
      start = 0,
      most,
      isWhole = false,
    }: { readonly start?: number; readonly most: number; readonly isWhole?: boolean },
  ): Promise<WorkspaceFile | undefined> {
    const found = await this.#ask({ op: "read", path, start, most, whole: isWhole }, most + headMost);
    return found && { entry: this.#entry(found.head), content: found.rest.subarray(0, most) };
  }

  /** Several files of at most `most` bytes each; those that cannot be read are left out, whatever the reason. */
  async readAll(paths: readonly string[], most: number): Promise<readonly WorkspaceFile[]> {
    const files: WorkspaceFile[] = [];
    for (let from = 0; from < paths.length; from += readAtOnce) {
      const some = paths.slice(from, from + readAtOnce);
      const output = await this.#run({ op: "read_all", paths: some, most }, some.length * (most + headMost));
      for (let at = 0; at < output.length; ) {
        const end = output.indexOf(10, at);
        if (end < 0) throw strange();
        const head = parseLine(output.toString("utf8", at, end));
        const { bytes } = lengthSchema.parse(head);
        at = end + 1 + bytes;
        const entry = entrySchema.safeParse(head);
        if (entry.success && entry.data.kind === "file" && some.includes(entry.data.path))
          files.push({ entry: entry.data, content: output.subarray(end + 1, at) });
      }
    }
    return files;
  }

  /** The place itself, and all below it in the order of their names, but not what is in folders of packages and caches. */
  async list(path: string, most: number): Promise<readonly WorkspaceEntry[]> {
    const found = await this.#ask({ op: "list", path, most });
    if (!found) return [];
    const below = found.rest.length === 0 ? [] : found.rest.toString().trimEnd().split("\n");
    return [this.#entry(found.head), ...below.map((line) => this.#entry(parseLine(line)))];
  }

  /**
   * Makes or replaces a file, and the folders on its way.
   * @param expected mark that must be there, 0 for no file. Throws `OtherMark` where there is another.
   */
  async write(path: string, content: Uint8Array, expected?: number): Promise<WorkspaceEntry> {
    const request = { op: "write", path, size: content.byteLength, expected: expected ?? null };
    const found = await this.#ask(request, headMost, Buffer.from(content));
    if (!found) throw new UserError(`${shown(path)} was taken away while it was written: try again.`);
    return this.#entry(found.head);
  }

  async makeFolder(path: string): Promise<void> {
    await this.#ask({ op: "folder", path });
  }

  /** Removes files, and folders with all that is in them; a link itself. Returns those that were there, and the number of files. */
  async remove(paths: readonly string[]): Promise<{ readonly gone: readonly string[]; readonly files: number }> {
    const found = await this.#ask({ op: "remove", paths });
    const asked = new Set(paths);
    if (!found) return { gone: [], files: 0 };
    const { gone, files } = goneSchema.parse(found.head);
    return { gone: gone.filter((path) => asked.has(path)), files };
  }

  /** Gives a file or folder another path, where nothing is yet; undefined where there is none. */
  async move(path: string, target: string): Promise<WorkspaceEntry | undefined> {
    const found = await this.#ask({ op: "move", path, target });
    return found && this.#entry(found.head);
  }

  #entry(head: unknown): WorkspaceEntry {
    const entry = entrySchema.safeParse(head);
    if (!entry.success) throw strange();
    return entry.data;
  }

  /** First line of the answer and what is behind it; undefined where nothing is at the path. */
  async #ask(
    request: Request,
    outputMost = answerMost,
    content?: Buffer,
  ): Promise<{ readonly head: unknown; readonly rest: Buffer } | undefined> {
    const output = await this.#run(request, outputMost, content);
    const end = output.indexOf(10);
    if (end < 0) throw strange();
    const head = parseLine(output.toString("utf8", 0, end));
    const refusal = refusalSchema.safeParse(head);
    if (!refusal.success) return { head, rest: output.subarray(end + 1) };
    if (refusal.data.error === "ENOENT") return undefined;
    throw refusalError(request.path ?? "", refusal.data);
  }

  async #run(request: Request, outputMost: number, content?: Buffer): Promise<Buffer> {
    const text = JSON.stringify({ top: workspaceFolder, ...request });
    const isLong = text.length > argumentMost;
    const argv = ["/usr/bin/python3", "-IS", "-c", program, isLong ? "-" : text] as const;
    const input = isLong ? Buffer.concat([Buffer.from(`${text}\n`), content ?? Buffer.alloc(0)]) : content;
    const order = { argv, input, seconds: secondsMost, outputMost };
    const { stdout, stderr } = await runProgram(this.#sandbox, order);
    if (/MemoryError/.test(stderr)) throw new UserError("The computer has no memory left: end something there.");
    return stdout;
  }
}

interface Request {
  readonly op: string;
  readonly path?: string;
  readonly [field: string]: unknown;
}

const strange = (): UserError => new UserError("The computer gave no answer that makes sense: try again, or reset it.");

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw strange();
  }
}

const shown = (path: string): string => `sandbox:${path}`;

function refusalError(path: string, { error, kind, size, mark }: z.output<typeof refusalSchema>): Error {
  const name = shown(path);
  switch (error) {
    case "stale":
      return new OtherMark(mark ?? 0);
    case "kind":
      return new UserError(`${name} is a ${kind}, and no file.`);
    case "large":
      return new UserError(
        `${name} has ${size} bytes, which is too much to be read at once: look at a part of it with run_command, such as head -c 60000, or grep.`,
      );
    case "outside":
      return new UserError(`${name} leads out of ${workspaceFolder} by a link: only what is in it can be used.`);
    case "loop":
    case "ELOOP":
      return new UserError(`${name} is a link that leads in a circle: remove it, or name another file.`);
    case "exists":
      return new UserError(
        `${name} cannot be moved: something is there already. Remove it first, or choose another name.`,
      );
    case "top":
      return new UserError("The workspace itself cannot be moved or removed: name something in it.");
    case "ENOTDIR":
    case "EEXIST":
      return new UserError(`${name} cannot be had: a file stands where one of its folders should be.`);
    case "EACCES":
    case "EPERM":
      return new UserError(`${name} is closed to the computer's user: open it with run_command chmod.`);
    case "ENOSPC":
    case "EDQUOT":
      return new UserError(`${name} was not written: the computer's disk is full. Remove something first.`);
    case "EFBIG":
      return new UserError(`${name} was not written: it is larger than a file of the computer may be.`);
    case "ENAMETOOLONG":
      return new UserError(`${name} has a name that is too long for the computer.`);
    case "EINVAL":
      return new UserError(`${name} cannot be moved into itself.`);
    default:
      return new UserError(`${name}: the computer says ${error}. Try again, or look with run_command ls -la.`);
  }
}
