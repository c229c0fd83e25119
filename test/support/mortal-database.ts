import type { Database } from "../../src/adapters/database/connection.ts";

/** A database as a process has it that dies: from then on nothing that it asks is heard or answered. */
export interface MortalDatabase {
  readonly database: Database;
  /** Resolves at its death. */
  readonly died: Promise<"died">;
}

/** Dies when it is about to ask for its statement number `at`, from 1; what it has asked for before is carried out. */
export function mortal(database: Database, at: number): MortalDatabase {
  const { promise: died, resolve: die } = Promise.withResolvers<"died">();
  const silence = new Promise<never>(() => {});
  const asked: Promise<unknown>[] = [];
  let statements = 0;
  return {
    died,
    database: {
      ...database,
      run(statement) {
        statements += 1;
        if (statements === at) void Promise.allSettled(asked).then(() => die("died"));
        if (statements >= at) return silence;
        const result = database.run(statement);
        asked.push(result);
        return result.then((heard) => (statements < at ? heard : silence));
      },
    },
  };
}
