import type { Database } from "../../adapters/database/connection.ts";
import { chainBudget } from "./effects.ts";

/** Counts the turns that agents have caused in each chain. */
export class Chains {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Number of turns that they may still cause in this chain. */
  async countRemaining(root: string): Promise<number> {
    const [row] = await this.#database.run(
      (sql) => sql<{ left: number }[]>`
        select ${chainBudget}::integer - coalesce((select spent from chains where root = ${root}), 0) as left`,
    );
    return row?.left ?? 0;
  }
}
