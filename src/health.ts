import type { Registry } from "prom-client";
import { backlogOf, within } from "./database/backlog.ts";
import type { Database } from "./database/connection.ts";
import type { ApplicationServiceOptions } from "./matrix/appservice.ts";
import type { createMetrics } from "./metrics.ts";

/** How long health and metrics wait for the database, in milliseconds. */
const answerMs = 2_000;

export interface HealthParts {
  readonly database: Database;
  readonly registry: Registry;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** Whether the start is over and the end has not begun. */
  readonly started: () => boolean;
  /** Whether the homeserver answered lately. */
  readonly reachable: () => boolean;
}

/** `/health/live`, `/health/ready` and `/metrics`: what waits is looked up when somebody asks, and not before. */
export const health =
  ({ database, registry, metrics, started, reachable }: HealthParts): ApplicationServiceOptions["mount"] =>
  (app) => {
    app.get("/health/live", (_request, response) => void response.json({ alive: true }));
    app.get("/health/ready", async (_request, response) => {
      const answer = await within(answerMs, database.sql`select 1`);
      const state = { started: started(), database: answer !== undefined, homeserver: reachable() };
      const ready = Object.values(state).every(Boolean);
      response.status(ready ? 200 : 503).json({ ready, ...state });
    });
    app.get("/metrics", async (_request, response) => {
      metrics.backlog(await within(answerMs, backlogOf(database)));
      response.type(registry.contentType).send(await registry.metrics());
    });
  };
