import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import type { FileInfo } from "../tables/files.ts";
import { formatPath } from "./path.ts";

/** A file as it is at one moment. */
export interface Stamp {
  /** As people write it. */
  readonly path: string;
  readonly version: number;
  /** Another one for every other content that is ever there. */
  readonly mark: string;
}

export const stampOf = (file: FileInfo): Stamp => {
  const { share, path, size, updatedAt, version } = file;
  // A file that comes with the program is written by every start.
  const writtenAt = version === 0 ? "" : updatedAt.toISOString();
  return { path: formatPath(file), version, mark: digest(share, path, version, size, writtenAt) };
};

/** Throws a `UserError` where the file is none of those that were approved, if any were, or not as it was. */
export function requireApproved(approved: readonly Stamp[] | undefined, file: FileInfo): void {
  const { path, mark } = stampOf(file);
  if (approved?.every((stamp) => stamp.mark !== mark))
    throw new UserError(`${path} has changed since it was approved.`);
}
