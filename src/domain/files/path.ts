import { UserError } from "../../base/lib/errors.ts";
import { HOME, type RoomId } from "../../base/lib/ids.ts";
import { visible } from "../../base/lmml/visible.ts";

/** The top-level namespaces. `sandbox` is there only where there are sandboxes. */
const shareNames = ["agents", "users", "rooms", "system", "sandbox"] as const;
export type ShareName = (typeof shareNames)[number];

/** A normalised path: two that name the same file are equal. */
export interface FilePath {
  readonly share: ShareName;
  /** Begins with `/` and never ends with one, but for `/` alone, which is the share's top folder. */
  readonly path: string;
}

/** Of a path without its share; more bytes than this do not fit into an index. */
const charactersMax = 1_024;
const bytesMax = 2_400;

const isShareName = (name: string): name is ShareName => (shareNames as readonly string[]).includes(name);

/** Matches text that another program may take for `.`, `/`, `\` or NUL after decoding. */
const encodedTrick = /%(?:2e|2f|5c|00)/i;

/**
 * Reads `share:/path`. Unicode is brought to NFC, empty parts, `.` and spaces around parts fall away, case is kept.
 * @throws UserError for everything that could mean another file than it seems to
 */
export function parsePath(text: string): FilePath {
  const given = text.trim().normalize("NFC");
  const colon = given.indexOf(":");
  const share = given.slice(0, Math.max(colon, 0));
  const path = given.slice(colon + 1);
  const refuse = (why: string): never => {
    throw new UserError(`The path ${JSON.stringify(visible(given.slice(0, 200)))} ${why}.`);
  };
  if (!isShareName(share) || !(path === "" || path.startsWith("/"))) {
    const [first = "", ...rest] = partsOf(given);
    if (isShareName(first))
      return refuse(`names no share: did you mean ${first}:/${visible(rest.join("/")).slice(0, 200)}`);
    return refuse(
      `names no share: write notes.txt for a file of this room, or SHARE:/PATH, such as agents:/notes.txt. Shares: ${shareNames.join(", ")}`,
    );
  }
  if (path.includes("\\")) refuse("holds a backslash: folders are separated by /");
  if (/[\n\r\t]/.test(path) || visible(path) !== path) refuse("holds characters that cannot be seen");
  if (encodedTrick.test(path)) refuse("holds an encoded dot, slash or NUL: write characters as they are");
  const parts = path
    .split("/")
    .map((part) => part.trim())
    .filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) refuse("holds `..`: write the whole path from the share on");
  const clean = `/${parts.join("/")}`;
  if (clean.length > charactersMax || Buffer.byteLength(clean) > bytesMax) {
    refuse(`is longer than ${charactersMax} characters`);
  }
  return { share, path: clean };
}

/** The folder in which a path without a share is: the room's, or at home the agent's own. */
export const folderHere = (agent: string, roomId: RoomId): FilePath =>
  roomId === HOME ? { share: "agents", path: `/${agent}` } : { share: "rooms", path: `/${roomId}` };

/** Matches the folder that agents have in a room for their working files. */
const workingFolder = /^agents\/+[^/:]+\/+memory(?:\/|$)/;

/**
 * A path as it is from its share on; one without a share is in the folder `here`. What could be either, because it has a
 * colon, or begins like a share, a room or a user, is left as it is, and has no share for `parsePath`; only the working
 * files of a room are meant wherever they are named, such as `agents/helper/memory/LOG.md`.
 */
export function fromShare(text: string, here: FilePath): string {
  const [first = ""] = partsOf(text.trim());
  if (here.share === "rooms" && workingFolder.test(text.trim())) return `${formatPath(here)}/${text.trim()}`;
  const isElsewhere = first.includes(":") || isShareName(first) || /^[!#@]/.test(first);
  return isElsewhere ? text : `${formatPath(here)}/${text.trim().replace(/^\/+/, "")}`;
}

/** A path as it is read in the folder `here`: without what `fromShare` puts before it; the folder itself is `.`. */
export function shortenPath(here: FilePath, file: { readonly share: string; readonly path: string }): string {
  const [whole, base] = [formatPath(file), `${formatPath(here)}/`];
  if (`${whole}/` === base) return ".";
  const short = whole.slice(base.length);
  return whole.startsWith(base) && fromShare(short, here) === whole ? short : whole;
}

/** True if a path, with its share, is in a sandbox. */
export const isInSandbox = (path: string): boolean => /^\s*sandbox:/.test(path);

/** Path of `sandbox:` for one as commands there write it: from /workspace on, or below it. */
export const inSandbox = (path: string): string =>
  isInSandbox(path)
    ? path
    : `sandbox:/${path
        .trim()
        .replace(/^\/workspace(?=\/|$)/, "")
        .replace(/^(?:\.?\/)+/, "")}`;

export const formatPath = ({ share, path }: { readonly share: string; readonly path: string }): string =>
  `${share}:${path}`;

const partsOf = (path: string): string[] => path.split("/").filter((part) => part !== "");

/** The first part: the agent, the user or the room whose files these are; '' for the top folder of a share. */
export const rootOf = ({ path }: { readonly path: string }): string => partsOf(path)[0] ?? "";

/** The last part; '' for the top folder of a share. */
export const nameOf = ({ path }: { readonly path: string }): string => partsOf(path).at(-1) ?? "";
