import { type FileInfo, folderType } from "../tables/files.ts";
import type { Keeping, KnowledgeEntry, KnowledgeOrigin } from "../tables/knowledge.ts";
import type { FileSystem } from "./file-system.ts";
import { formatPath, nameOf } from "./path.ts";
import { sectionsWithLines } from "./sections.ts";

/** Longest beginning of a file that becomes knowledge, in characters. */
export const indexedMost = 1_000_000;

/** Lists the files, and no folders, that fit a pattern. */
export const filesThatFit = async (files: FileSystem, pattern: string): Promise<FileInfo[]> =>
  (await files.list(pattern)).filter(({ contentType }) => contentType !== folderType);

/** Sections of a file, as knowledge. */
export interface FileKnowledge {
  readonly entries: readonly KnowledgeEntry[];
  /** Sources of all of them begin so. */
  readonly prefix: string;
  /** The file is longer than what becomes knowledge. */
  readonly isCut: boolean;
}

/** Cuts a file into sections, each of which is an entry of knowledge. */
export function sectionsAsKnowledge(file: Pick<FileInfo, "share" | "path">, text: string): FileKnowledge {
  const prefix = `fileChunk:${formatPath(file)}[`;
  const isCut = text.length > indexedMost;
  const sections = sectionsWithLines(isCut ? text.slice(0, indexedMost).toWellFormed() : text);
  return { entries: sections.map((section, index) => ({ source: `${prefix}${index}]`, ...section })), prefix, isCut };
}

/** Origin of knowledge from a file. `sources`: its walls, as `FileSystem.sourcesOf` gives them. */
export const originOfFile = (
  { agent, requester, roomId }: Keeping,
  file: Pick<FileInfo, "share" | "path" | "version" | "eventId" | "isTainted">,
  sources: KnowledgeOrigin["sources"],
): KnowledgeOrigin => {
  const { eventId, isTainted, path, share, version } = file;
  return {
    ...{ agent, roomId, requester },
    title: nameOf({ path }),
    sources,
    taint: isTainted ? [formatPath({ share, path })] : [],
    eventId,
    file: { share, path, version },
  };
};
