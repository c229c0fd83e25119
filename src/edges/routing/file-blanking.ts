import { giveWay } from "../../base/lib/clock.ts";
import { digest, HOME, type RoomId, secret } from "../../base/lib/ids.ts";
import { blank, type Repeats } from "../../base/lib/repeats.ts";
import { factsText, salvageFacts } from "../../domain/files/facts.ts";
import { formatPath, rootOf } from "../../domain/files/path.ts";
import { stateNameOf } from "../../domain/files/working-files.ts";
import type { FilePlace } from "../../domain/tables/files.ts";
import type { RedactionMark } from "../../domain/tables/redaction-marks.ts";
import type { WrittenFiles } from "../../domain/tables/written-files.ts";

interface Search {
  readonly mark: RedactionMark;
  /** Turns that may have seen the event. */
  readonly turnIds: readonly number[];
  readonly repeats: Repeats;
  readonly files: WrittenFiles;
}

interface Writing extends FilePlace {
  readonly writeKey: string | null;
  readonly isSaid: boolean;
}

/** Ending of a name that tells what a file is. */
const ending = /\.[A-Za-z][A-Za-z0-9]{0,4}$/;

/**
 * Blanks lines of texts that these turns have written, and that were not there before. Returns the places of the files,
 * as sources name them.
 */
export async function blankFileTexts(search: Search): Promise<RoomId[]> {
  const { files, mark, repeats } = search;
  const isTheirs = ownership(search);
  const reached: RoomId[] = [];
  for (const file of await files.findSince(mark)) {
    await giveWay();
    const found = await files.read(file, mark);
    if (!found || !repeats.in(found.text)) continue;
    const blanked = repeats.blankLines(found.text, new Set(found.before.split(/\r\n|[\r\n]/)));
    const isFacts = blanked !== found.text && stateNameOf(file) === "facts.json";
    const text = isFacts ? factsText(salvageFacts(blanked)) : blanked;
    if (text === found.text || !(await isTheirs(file))) continue;
    await files.replace(file, text);
    reached.push(placeOf(file));
  }
  return reached;
}

/** Names that these turns have given to files and folders, and that repeat the words. */
export class FileNames {
  readonly #found: readonly FilePlace[];
  readonly #search: Search;

  private constructor(found: readonly FilePlace[], search: Search) {
    this.#found = found;
    this.#search = search;
  }

  static async find(search: Search): Promise<FileNames> {
    const { files, mark, repeats } = search;
    const isTheirs = ownership(search);
    const looked = new Set<string>();
    const found: FilePlace[] = [];
    for (const { share, path } of await files.paths(mark)) {
      await giveWay();
      const [root = "", ...names] = path.slice(1).split("/");
      const isSpread = !names.some((name) => repeats.in(name)) && repeats.in(names.join("/"));
      for (const [index, name] of names.entries()) {
        const place = { share, path: `/${[root, ...names.slice(0, index + 1)].join("/")}` };
        if (looked.has(formatPath(place)) || !(isSpread || repeats.in(name))) continue;
        looked.add(formatPath(place));
        const first = await files.first(place, mark);
        if (first?.isNewer && (await isTheirs(first))) found.push(place);
      }
    }
    return new FileNames(found, search);
  }

  get places(): RoomId[] {
    return this.#found.map(placeOf);
  }

  /** Renames them. Whose write it was can be told from the path alone, so that this comes last. */
  async blank(): Promise<void> {
    const { files, repeats } = this.#search;
    // Files are renamed before the folder in which they are.
    const deepest = this.#found.toSorted((a, b) => b.path.split("/").length - a.path.split("/").length);
    for (const { share, path } of deepest) {
      const folder = path.slice(0, path.lastIndexOf("/"));
      const [suffix = ""] = ending.exec(path) ?? [];
      const kept = repeats.in(suffix) ? "" : suffix;
      for (let name = blank; !(await files.rename({ share, path }, `${folder}/${name}${kept}`)); )
        name = `${blank}-${secret(4)}`;
    }
  }
}

/** Tells if one of the turns has written something, or if it came with what an agent said. */
function ownership({ files, turnIds }: Search): (writing: Writing) => Promise<boolean> {
  let keys: Promise<readonly string[]> | undefined;
  return async ({ share, path, isSaid, writeKey }) => {
    // Lines are added to a working file whose last writer is somebody else.
    if (isSaid || stateNameOf({ share, path })) return true;
    keys ??= files.writeKeys(turnIds);
    return (await keys).some((key) => digest(key, formatPath({ share, path })) === writeKey);
  };
}

/** Names the room, or user, behind whose wall a file stands. */
const placeOf = (file: FilePlace): RoomId =>
  file.share === "rooms" || file.share === "users" ? (rootOf(file) as RoomId) : HOME;
