import { readFileSync } from "node:fs";
import { join } from "node:path";

const program = readFileSync(join(import.meta.dirname, "keep-output.py"), "utf8");

/** Megabytes of a command's output that are kept in its file. */
export const keptMegabytes = 64;

/** File in the sandbox that keeps the output of a command, as paths of `sandbox:` have it. */
export const outputFile = (number: number, isBackground: boolean): string =>
  `/.output/${number}${isBackground ? ".log" : ""}`;

/** Arguments of a process that runs a command line of Bash, and keeps its output in this file. */
export const keepOutput = (file: string, command: string): readonly [string, ...string[]] => [
  ...(["/usr/bin/python3", "-IS", "-c", program] as const),
  ...[`/workspace${file}`, command, String(keptMegabytes << 20)],
];
