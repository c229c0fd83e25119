import type { FileSystem } from "../files/file-system.ts";
import type { Line } from "../files/grep.ts";
import { formatPath } from "../files/path.ts";
import { bestOf, type SearchRequest, type SearchResult, search } from "../files/search.ts";
import type { Passage } from "../tables/knowledge-query.ts";
import type { PassageFinder } from "./windows.ts";

/** Passages of one file that are shown. */
const passagesPerFile = 3;
/** Part of its score that a file keeps that was searched for the words alone. */
const wordsOnly = 0.5;

/**
 * Finds files that fit a query by its meaning, as far as they are knowledge of the agent (see `FS_Index`), and the
 * others by the words in them; best first.
 */
export async function searchByMeaning(
  files: FileSystem,
  request: Omit<SearchRequest, "mode" | "except">,
  findPassages: PassageFinder,
): Promise<SearchResult[]> {
  const { limit, path, query } = request;
  const listed = new Map((await files.list(path)).map((file) => [file.path, file]));
  const [one] = listed.values();
  if (!one) return [];
  const among = { share: one.share, paths: [...listed.keys()] };
  const found = await findPassages({ text: query, limit, files: among });
  const byFile = Map.groupBy(found, (passage) => passage.path ?? "");
  const results: SearchResult[] = [];
  for (const [file, passages] of byFile) {
    const info = listed.get(file);
    if (!info) continue;
    files.shows(info);
    const lines = passages.slice(0, passagesPerFile).map(lineOf);
    results.push({ path: formatPath(info), score: Math.min(1, passages[0]?.score ?? 0), lines });
  }
  const others = await search(files, { ...request, mode: "content", except: new Set(byFile.keys()) });
  return bestOf([...results, ...others.map((other) => ({ ...other, score: other.score * wordsOnly }))], limit);
}

const lineOf = ({ firstLine, text }: Passage): Line => ({
  number: firstLine ?? 1,
  text: text.replace(/\s+/g, " "),
  matches: true,
});
