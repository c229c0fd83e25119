import { setImmediate } from "node:timers/promises";
import { RE2JS } from "re2js";
import { UserError } from "../../base/lib/errors.ts";
import type { FileSystem } from "./file-system.ts";
import { formatPath } from "./path.ts";

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
  /** The line itself fits; others stand around it. */
  readonly matches: boolean;
}

export interface Found {
  readonly path: string;
  /** In order; where numbers leap, something is left out. */
  readonly lines: readonly Line[];
}

export interface GrepRequest {
  readonly glob: string;
  /** In RE2's syntax, which takes linear time: no look-around and no back references. */
  readonly regex: string;
  /** Lines to show before and after each that fits. */
  readonly surrounding: number;
  /** Lines that fit, in all files together. */
  readonly limit: number;
  readonly signal: AbortSignal;
}

export interface GrepResult {
  readonly found: readonly Found[];
  readonly filesSearched: number;
  /** The limit was reached, and what lies behind was not looked at. */
  readonly isCut: boolean;
}

const regexMax = 1_000;

/** Looks for lines in all text files that fit a pattern of paths, or that are below a folder. */
export async function grep(files: FileSystem, request: GrepRequest): Promise<GrepResult> {
  const { glob, regex, surrounding, limit, signal } = request;
  const pattern = compile(regex);
  const found: Found[] = [];
  let [left, filesSearched, since] = [limit, 0, 0];
  for await (const file of files.texts(await files.list(glob))) {
    signal.throwIfAborted();
    filesSearched++;
    const lines = linesIn(file.text, pattern, surrounding, left);
    if (lines.length > 0) {
      files.shows(file);
      found.push({ path: formatPath(file), lines });
    }
    left -= lines.filter((line) => line.matches).length;
    if (left === 0) return { found, filesSearched, isCut: true };
    since += file.size;
    if (since > breathAfter) {
      since = 0;
      await setImmediate();
    }
  }
  return { found, filesSearched, isCut: false };
}

/** Bytes after which others have their turn. */
const breathAfter = 1 << 20;

/** @throws UserError that says what is wrong with it */
export function compile(regex: string): RE2JS {
  if (regex.length > regexMax) throw new UserError(`The pattern is longer than ${regexMax} characters.`);
  try {
    return RE2JS.compile(regex, RE2JS.MULTILINE);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new UserError(`The pattern cannot be used: ${why}. Look-around and back references are not known here.`);
  }
}

/** The lines that fit, `limit` at most, and those around them. */
export function linesIn(text: string, pattern: RE2JS, surrounding: number, limit: number): Line[] {
  const plain = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  // Most files hold nothing, and that is found out faster without cutting them up. `\A` and `\z` mean the whole text.
  if (!/\\[Az]/.test(pattern.pattern()) && !pattern.test(plain)) return [];
  const all = plain.endsWith("\n") ? plain.slice(0, -1).split("\n") : plain.split("\n");
  const fitting: number[] = [];
  for (let index = 0; index < all.length && fitting.length < limit; index++) {
    if (pattern.test(all[index] ?? "")) fitting.push(index);
  }
  const matches = new Set(fitting);
  const shown = new Set(
    fitting.flatMap((at) => Array.from({ length: 2 * surrounding + 1 }, (_, offset) => at - surrounding + offset)),
  );
  return [...shown]
    .filter((index) => index >= 0 && index < all.length)
    .sort((a, b) => a - b)
    .map((index) => ({ number: index + 1, text: all[index] ?? "", matches: matches.has(index) }));
}
