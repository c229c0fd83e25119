import { RE2JS } from "re2js";
import { UserError } from "../../base/lib/errors.ts";
import type { FileSystem } from "./file-system.ts";
import { type Line, linesIn } from "./grep.ts";
import { formatPath, nameOf } from "./path.ts";

export const searchModes = ["filename", "content", "semantic"] as const;
export type SearchMode = (typeof searchModes)[number];

export interface SearchResult {
  readonly path: string;
  /** From 0 to 1: the best fit has the highest. */
  readonly score: number;
  /** Lines in which a word of the query stands; none when names were searched. */
  readonly lines: readonly Line[];
}

export interface SearchRequest {
  /** A folder, or a pattern of paths. */
  readonly path: string;
  readonly query: string;
  readonly mode: Exclude<SearchMode, "semantic">;
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Paths of files that are left out. */
  readonly except?: ReadonlySet<string>;
}

const linesPerFile = 5;

/** Files that fit a query best, by the words in their names or in their texts; best first. */
export async function search(files: FileSystem, request: SearchRequest): Promise<SearchResult[]> {
  const { path, query, mode, limit, signal, except } = request;
  const words = [...new Set(wordsOf(query))];
  if (words.length === 0) throw new UserError("The query holds no word to look for.");
  const listed = (await files.list(path)).filter((file) => !except?.has(file.path));
  const results: SearchResult[] = [];
  if (mode === "filename") {
    for (const file of listed) {
      const score = scoreName(file.path, words);
      if (score > 0) results.push({ path: formatPath(file), score, lines: [] });
    }
    return bestOf(results, limit);
  }
  const patterns = words.map((word) => RE2JS.compile(RE2JS.quote(word), RE2JS.CASE_INSENSITIVE | RE2JS.MULTILINE));
  const any = RE2JS.compile(words.map(RE2JS.quote).join("|"), RE2JS.CASE_INSENSITIVE | RE2JS.MULTILINE);
  for await (const file of files.texts(listed)) {
    signal.throwIfAborted();
    const hits = patterns.filter((pattern) => pattern.test(file.text)).length;
    if (hits === 0) continue;
    files.shows(file);
    const score = (hits - 1 + scoreName(file.path, words) / 2 + 0.5) / words.length;
    results.push({
      path: formatPath(file),
      score: Math.min(1, score),
      lines: linesIn(file.text, any, 0, linesPerFile),
    });
  }
  return bestOf(results, limit);
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/** The share of the words that stand in a path; those in the file's own name count double. */
function scoreName(path: string, words: readonly string[]): number {
  const [whole, name] = [path.toLowerCase(), nameOf({ path }).toLowerCase()];
  const points = words.map((word) => (name.includes(word) ? 1 : whole.includes(word) ? 0.5 : 0));
  return points.reduce<number>((sum, point) => sum + point, 0) / words.length;
}

/** Sorts results, and takes the best. */
export const bestOf = (results: readonly SearchResult[], limit: number): SearchResult[] =>
  results.toSorted((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1)).slice(0, limit);
