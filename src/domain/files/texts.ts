import type { FileInfo, FileRow } from "../tables/files.ts";
import { isTextType } from "./content.ts";
import type { ShareName } from "./path.ts";
import type { Store } from "./store.ts";

export type FileText = FileRow & { readonly text: string };

/** Larger files are not looked at for their text. */
export const textBytesMost = 16 << 20;

const batchFiles = 500;
const batchBytes = 4 << 20;

/**
 * Texts of files, in their order, a few megabytes at a time; what is no text is left out, and so is what was written since
 * they were listed from something else, for which the walls are others.
 */
export async function* textsOf(
  storeOf: (share: ShareName) => Store,
  files: readonly FileInfo[],
): AsyncGenerator<FileText> {
  let batch: FileInfo[] = [];
  let size = 0;
  for (const [index, file] of files.entries()) {
    if (isTextType(file.contentType) && file.size <= textBytesMost) {
      batch.push(file);
      size += file.size;
    }
    if (batch.length === 0 || (batch.length < batchFiles && size < batchBytes && index < files.length - 1)) continue;
    const rows = await storeOf(file.share as ShareName).read(batch);
    const byPath = new Map(rows.map((row) => [row.path, row]));
    for (const listed of batch) {
      const row = byPath.get(listed.path);
      if (row && row.text !== null && isFrom(row, listed)) yield { ...row, text: row.text };
    }
    batch = [];
    size = 0;
  }
}

/** True if a file was made from nothing else than when it was seen. */
export const isFrom = ({ sources }: Pick<FileInfo, "sources">, seen: Pick<FileInfo, "sources">): boolean =>
  sources.every((source) => seen.sources.includes(source));
