import { join, resolve } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import { type ReadText, textMost } from "./read-text.ts";

/** Bytes of a file that are taken. */
export const pdfBytesMost = 20_000_000;
const secondsMost = 20;
/** Kilobytes of memory that the process may write to; Node alone wants half of it. */
const memoryKilobytes = 1_048_576;

const project = resolve(import.meta.dirname, "../../..");
const answer = z.union([
  z.object({ title: z.unknown().optional(), pages: z.array(z.string()), all: z.number() }),
  z.object({ error: z.string() }),
]);

const turns = new InTurn<"pdf">();

/** Reads the text of a PDF, in a process that may read this program's files and nothing else, and has a limit of memory. */
export const readPdf = (bytes: Uint8Array, signal: AbortSignal): Promise<ReadText> =>
  turns.run(["pdf"], async () => {
    signal.throwIfAborted();
    const node = [
      process.execPath,
      "--max-old-space-size=256",
      "--permission",
      `--allow-fs-read=${join(project, "*")}`,
    ];
    const child = await execa(
      "/bin/sh",
      ["-c", `ulimit -d ${memoryKilobytes}; exec "$@"`, "sh", ...node, join(import.meta.dirname, "pdf-child.ts")],
      {
        input: bytes,
        env: {},
        extendEnv: false,
        reject: false,
        timeout: secondsMost * 1_000,
        forceKillAfterDelay: 100,
        maxBuffer: 20_000_000,
        stderr: "ignore",
        cancelSignal: signal,
      },
    );
    signal.throwIfAborted();
    if (child.timedOut) throw new UserError(`The PDF cannot be read: it takes longer than ${secondsMost} s.`);
    if (child.failed) throw new UserError("The PDF cannot be read: it takes more memory than a file may.");
    const said = answer.parse(JSON.parse(child.stdout));
    if ("error" in said) throw new UserError(`The PDF cannot be read: it is ${said.error}.`);
    const { pages, all, title } = said;
    const text = pages.map((page, at) => `## Page ${at + 1}\n\n${page.trim()}`).join("\n\n");
    const storable = text.replaceAll("\0", "").toWellFormed();
    return {
      text: storable.slice(0, textMost).toWellFormed(),
      title: typeof title === "string" && title.trim() !== "" ? title.trim().slice(0, 200).toWellFormed() : undefined,
      contentType: "application/pdf",
      isWhole: true,
      isCut: storable.length > textMost || pages.length < all,
    };
  });
