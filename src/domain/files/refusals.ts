import { UserError } from "../../base/lib/errors.ts";
import type { FilePlace, OldVersion, WriteOutcome } from "../tables/files.ts";
import { rootOf } from "./path.ts";

/** Somebody else has changed the file meanwhile. */
export class StaleVersion extends UserError {
  constructor(path: string, expected: number, present: number) {
    super(
      expected === 0
        ? `${path} is there already, in version ${present}.`
        : present === 0
          ? `${path} is not there any more.`
          : `${path} has version ${present} by now, and you have seen version ${expected}: read it again.`,
    );
  }
}

export const missingError = (path: string): UserError => new UserError(`There is no file ${path}.`);

export const deletedError = (path: string, versions: readonly OldVersion[]): UserError =>
  new UserError(
    `There is no file ${path}. It was deleted; kept versions: ${versions.map((one) => one.version).join(", ")}.`,
  );

/** Others write the file all the time, or it holds what nobody may be shown there. */
export const changingError = (path: string): UserError => new UserError(`${path} cannot be read now.`);

/** @param path the file as the caller writes it */
export const refusal = (
  path: string,
  file: FilePlace,
  state: Exclude<WriteOutcome["state"], "written" | "stale">,
  limits: { readonly file: number; readonly root: number },
): string => {
  switch (state) {
    case "blocked":
      return `${path} cannot be written: a folder stands there, or a file stands where one of its folders should be.`;
    case "redacted":
      return `${path} cannot be written: the message that the content came with was removed.`;
    case "large":
      return `${path} would be larger than ${bytes(limits.file)}, which is the most for one file.`;
    case "full":
      return `${path} does not fit: all files of ${file.share}:/${rootOf(file)} together may have ${bytes(limits.root)}. Delete some first.`;
  }
};

const bytes = (count: number): string => (count >= 1 << 20 ? `${Math.floor(count / (1 << 20))} MB` : `${count} bytes`);
