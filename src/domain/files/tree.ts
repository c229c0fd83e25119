import { type FileInfo, folderType } from "../tables/files.ts";

interface Node {
  readonly folders: Map<string, Node>;
  readonly files: [name: string, info: FileInfo][];
  /** Files below, on whatever level. */
  count: number;
  hidden: number;
}

const newNode = (): Node => ({ folders: new Map(), files: [], count: 0, hidden: 0 });

/**
 * Files as a tree of indented lines, folders first. A folder deeper than `depth` levels tells only how many files are
 * in it; of more than `linesMax` lines the rest is counted.
 * @param base the folder that all the files are in
 */
export function treeOf(files: readonly FileInfo[], base: string, depth: number, linesMax: number): string {
  const root = newNode();
  const skipped = base === "/" ? 1 : base.length + 1;
  for (const file of files) {
    const parts = file.path.slice(skipped).split("/");
    const isFolder = file.contentType === folderType;
    const name = isFolder ? undefined : parts.pop();
    const hidden = file.hidden ?? 0;
    const added = isFolder ? hidden : 1;
    let node = root;
    node.count += added;
    for (const part of parts.filter((one) => one !== "")) {
      const next = node.folders.get(part) ?? newNode();
      node.folders.set(part, next);
      node = next;
      node.count += added;
    }
    node.hidden += hidden;
    if (name !== undefined) node.files.push([name, file]);
  }
  const lines = linesOf(root, 0, depth);
  const more = lines.length - linesMax;
  return more > 0 ? [...lines.slice(0, linesMax), `[${more} more lines]`].join("\n") : lines.join("\n");
}

function linesOf(node: Node, level: number, depth: number): string[] {
  const indent = "  ".repeat(level);
  const folders = [...node.folders].flatMap(([name, folder]) => {
    const line = `${indent}${name}/`;
    if (level + 1 < depth) return [line, ...linesOf(folder, level + 1, depth)];
    return [`${line} (${folder.count} ${folder.count === 1 ? "file" : "files"})`];
  });
  const files = node.files.map(
    ([name, { contentType, size }]) => `${indent}${name} (${contentType}, ${sizeText(size)})`,
  );
  return [...folders, ...files, ...hiddenLines(node.hidden).map((line) => indent + line)];
}

/** Says how many more there are whose names no path can have. */
export const hiddenLines = (count: number): string[] =>
  count === 0 ? [] : [`[and ${count} more with names that cannot be shown]`];

/** Bytes as people say them. */
export const sizeText = (bytes: number): string => {
  if (bytes < 1 << 10) return `${bytes} bytes`;
  if (bytes < 1 << 20) return `${(bytes / (1 << 10)).toFixed(1)} KB`;
  return `${(bytes / (1 << 20)).toFixed(1)} MB`;
};
