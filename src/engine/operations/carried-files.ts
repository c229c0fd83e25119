import { UserError } from "../../base/lib/errors.ts";
import type { FileSystemParts } from "../../domain/files/file-reader.ts";
import { type Stamp, stampOf } from "../../domain/files/stamp.ts";
import type { OperationRequest } from "./operation.ts";
import type { Origin } from "./origin.ts";
import { filesFor } from "./tool-context.ts";

/**
 * Finds the files that a call takes elsewhere, as they are now; none where it may not see them, so that it will fail.
 * An approval lends the right to act, and not the right to see more files.
 */
export async function findCarriedFiles(
  { tool, input }: OperationRequest,
  files: FileSystemParts,
  origin: Origin,
): Promise<readonly Stamp[]> {
  const pattern = tool.carries?.(input);
  if (pattern === undefined) return [];
  try {
    return (await filesFor(files, origin, "use").list(pattern)).map(stampOf);
  } catch (error) {
    if (error instanceof UserError) return [];
    throw error;
  }
}
