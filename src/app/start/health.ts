import type { Registry } from "prom-client";
import { backlogOf, within } from "../../adapters/database/backlog.ts";
import type { Database } from "../../adapters/database/connection.ts";
import type { ApplicationServiceOptions } from "../../adapters/matrix/appservice.ts";
import type { SoleBridge } from "../../edges/routing/sole-bridge.ts";
import type { createMetrics } from "./metrics.ts";

/** Longest wait of metrics for the database, in milliseconds. */
const answerMs = 2_000;

export interface HealthParts {
  readonly database: Database;
  readonly registry: Registry;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** True between the end of the start and the beginning of the end. */
  readonly started: () => boolean;
  /** True if the homeserver answered lately. */
  readonly reachable: () => boolean;
  /** Knows whether it pushes to another bridge with our registration. */
  readonly sole: () => Pick<SoleBridge, "mayWork" | "wasHeard">;
}

/** `/health/live`, `/health/ready` and `/metrics`: what waits is looked up when somebody asks, and not before. */
export const health =
  ({ database, registry, metrics, started, reachable, sole }: HealthParts): ApplicationServiceOptions["mount"] =>
  (app) => {
    app.get("/health/live", (_request, response) => void response.json({ alive: true }));
    app.get("/health/ready", async (_request, response) => {
      const state = {
        started: started(),
        database: await database.isWell(),
        homeserver: reachable(),
        sole: sole().mayWork,
      };
      const isReady = Object.values(state).every(Boolean);
      response.status(isReady ? 200 : 503).json({ ready: isReady, ...state });
    });
    // `check` asks whether a ping that it has caused came to a process on this database.
    app.get("/health/pings/:id", async (request, response) => {
      response.json({ heard: await within(answerMs, sole().wasHeard(request.params.id)) });
    });
    app.get("/metrics", async (_request, response) => {
      metrics.backlog(await within(answerMs, backlogOf(database)));
      response.type(registry.contentType).send(await registry.metrics());
    });
  };
