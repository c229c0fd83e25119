import { cp } from "node:fs/promises";
import { inject } from "vitest";

/** Puts an embedded database with the whole schema and no rows into the folder, which must not exist or be empty. */
export const copyEmbedded = (dir: string): Promise<void> => cp(inject("embeddedTemplate"), dir, { recursive: true });
