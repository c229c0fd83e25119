import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const root = join(import.meta.dirname, "..");
const postgres = "test/support/global-postgres.ts";
const embedded = "test/support/global-embedded.ts";
const synapse = "test/support/global-synapse.ts";
const sandbox = "test/support/global-sandbox.ts";

/**
 * `unit` needs nothing but Node; `database` PostgreSQL; `sandbox` Podman; `e2e` PostgreSQL, Synapse, and whatever else is real. `faults`
 * is what takes long, and runs by `npm run faults` alone; `pictures` makes those of the
 * documents, by `npm run pictures`.
 */
export default defineConfig({
  root,
  test: {
    // Most files wait for other processes more than they work.
    maxWorkers: Math.max(4, availableParallelism()),
    expect: { poll: { timeout: 15_000 } },
    projects: [
      {
        root,
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.db.test.ts", "test/**/*.box.test.ts", "test/e2e/**", "test/faults/**"],
          testTimeout: 60_000,
        },
      },
      {
        root,
        extends: true,
        test: {
          name: "database",
          include: ["test/**/*.db.test.ts"],
          globalSetup: [postgres, embedded],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        root,
        extends: true,
        test: {
          name: "sandbox",
          include: ["test/**/*.box.test.ts"],
          globalSetup: [postgres, embedded, sandbox],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        root,
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: [postgres, embedded, synapse, sandbox],
          testTimeout: 60_000,
          hookTimeout: 90_000,
        },
      },
      {
        root,
        extends: true,
        test: {
          name: "pictures",
          include: ["test/pictures/pictures.ts"],
          globalSetup: [embedded, synapse],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        root,
        extends: true,
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          globalSetup: [postgres, embedded, synapse, sandbox],
          testTimeout: 600_000,
          hookTimeout: 90_000,
        },
      },
    ],
  },
});
