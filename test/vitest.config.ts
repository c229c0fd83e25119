import { join } from "node:path";
import { defineConfig } from "vitest/config";

const root = join(import.meta.dirname, "..");
const postgres = "test/support/global-postgres.ts";
const synapse = "test/support/global-synapse.ts";

/** `unit` needs nothing but Node; `database` PostgreSQL; `e2e` PostgreSQL, Synapse, and whatever else is real. */
export default defineConfig({
  root,
  test: {
    projects: [
      {
        root,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/database/**", "test/e2e/**"],
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        root,
        test: {
          name: "database",
          include: ["test/database/**/*.test.ts"],
          globalSetup: [postgres],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        root,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: [postgres, synapse],
          testTimeout: 60_000,
          hookTimeout: 90_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
