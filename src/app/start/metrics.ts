import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from "prom-client";
import type { Backlog } from "../../adapters/database/backlog.ts";
import type { ChatModel } from "../../adapters/model/chat.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { BudgetBook } from "../../domain/budget/book.ts";

/** Outcome of a turn: `parked` waits for people, `left` is left to the next start, or to another process. */
export type TurnOutcome = "done" | "parked" | "failed" | "stopped" | "left";

const seconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Makes the metrics of the bridge and of its process. Counters are this process's, since its start. */
export function createMetrics(registry: Registry) {
  // A timer measures how late the event loop is. Every 10 ms, as it would be, it keeps an idle process busy.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 500 });
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name: `clevernet_${name}_total`, help, labelNames, registers });
  const gauge = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name: `clevernet_${name}`, help, labelNames, registers });
  const duration = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Histogram({ name: `clevernet_${name}_seconds`, help, labelNames, buckets: seconds, registers });

  const waiting = gauge(
    "waiting",
    "What is stored and not done: events to route, wakes to work on, messages to send, encrypted events without a key, memories without vectors",
    "what",
  );
  const waitingAge = gauge("waiting_age_seconds", "How long the oldest of it has been waiting", "what");
  const databaseUp = gauge("database_up", "Whether the database answers");
  const turns = duration("turn_duration", "Turns that ended in this process, by what became of them", "outcome");
  const calls = duration("model_call_duration", "Calls of language models, retries included", "model", "outcome");
  const retries = counter(
    "model_retries",
    "Attempts to call a language model that another followed, by the status of the answer",
    "model",
    "status",
  );
  const tokens = counter(
    "model_tokens",
    "Tokens by kind; those from the provider's cache are part of the prompt",
    "model",
    "kind",
  );
  const requests = counter("homeserver_requests", "Requests to the homeserver, by the status of the answer", "status");
  const cost = counter("model_cost_usd", "US dollars, as the provider or the configured prices say", "model");

  const unsealed = counter(
    "encrypted_events",
    "Encrypted events by what became of them: read, unreadable, or why their key is not there",
    "outcome",
  );
  const shared = counter("keys_shared", "Requests that gave keys to other devices");
  const commits = duration("device_commit", "Writes of what devices remember");
  const serversUp = gauge("mcp_up", "Whether a server of tools answered when it was asked last", "server");
  const serverCalls = counter("mcp_calls", "Calls of tools of servers, by what became of them", "server", "outcome");
  const counted = (name: string, help: string, count: () => number) =>
    new Gauge({
      name: `clevernet_${name}`,
      help,
      registers,
      collect() {
        this.set(count());
      },
    });

  return {
    received: counter("events_received", "Events that the homeserver pushed"),
    refused: counter("transactions_refused", "Transactions that could not be stored: the homeserver sends them again"),
    swept: counter("events_swept", "Events that only the sweep found"),
    outbox: counter("outbox", "What became of attempts to send", "outcome"),
    steps: counter("steps", "Model calls and operations that were written down"),
    modelRetried: (model: string, status: number | undefined): void => retries.inc({ model, status: status ?? "none" }),
    homeserverAnswered: (status: number): void => requests.inc({ status: status || "none" }),
    turnEnded: (outcome: TurnOutcome, milliseconds: number): void => turns.observe({ outcome }, milliseconds / 1_000),
    encryption: {
      onUnsealed: (outcome: string): void => unsealed.inc({ outcome }),
      onShared: (): void => shared.inc(),
      onCommitted: (milliseconds: number): void => commits.observe(milliseconds / 1_000),
      devicesRenewed: counter("devices_renewed", "Devices of agents that were made anew, in place of useless ones"),
      open: (count: () => number) =>
        counted("devices_open", "Devices of agents that are in this process's memory", count),
    },
    embedded: counter("memories_embedded", "Memories that got vectors, by which they are found by meaning"),
    embedding: (isLoaded: () => boolean) =>
      counted("embedding_model_loaded", "Whether the local embedding model is in memory", () => Number(isLoaded())),
    serverLooked: (server: string, isUp: boolean): void => serversUp.set({ server }, Number(isUp)),
    serverCalled: (server: string, outcome: string): void => serverCalls.inc({ server, outcome }),
    running: (count: () => number) => counted("turns_running", "Turns at work in this process", count),
    /** Takes the database's answer; undefined: it gives none. */
    backlog(found: Backlog | undefined): void {
      databaseUp.set(found ? 1 : 0);
      waiting.reset();
      waitingAge.reset();
      if (!found) return;
      for (const what of ["events", "wakes", "outbox", "sealed", "memories"] as const) {
        waiting.set({ what }, found[what]);
        waitingAge.set({ what }, found[`${what}Age`]);
      }
    },
    /** Wraps a model so that its calls are counted. */
    measured: (model: ChatModel, book: Pick<BudgetBook, "priceOf">, clock: Clock): ChatModel => ({
      async complete(request, ...rest) {
        const name = request.model;
        const started = clock.monotonic();
        const ended = (outcome: string) =>
          calls.observe({ model: name, outcome }, (clock.monotonic() - started) / 1_000);
        try {
          const completion = await model.complete(request, ...rest);
          const usage = book.priceOf(name, completion.usage);
          tokens.inc({ model: name, kind: "prompt" }, usage.promptTokens);
          tokens.inc({ model: name, kind: "cached" }, usage.cachedTokens);
          tokens.inc({ model: name, kind: "completion" }, usage.completionTokens);
          cost.inc({ model: name }, usage.costUsd ?? 0);
          ended("done");
          return completion;
        } catch (error) {
          ended("failed");
          throw error;
        }
      },
    }),
  };
}
