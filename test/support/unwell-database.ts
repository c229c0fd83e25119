import type { Database } from "../../src/adapters/database/connection.ts";
import { RetryError } from "../../src/base/lib/errors.ts";

/** A database that refuses its statement number `at`, from 1, as one does whose disk is full. */
export function refusing(database: Database, at: number): { readonly database: Database; refused(): boolean } {
  let statements = 0;
  return {
    refused: () => statements >= at,
    database: {
      ...database,
      async run(statement, patience) {
        statements += 1;
        if (statements === at) throw new RetryError("the disk is full");
        return database.run(statement, patience);
      },
    },
  };
}
