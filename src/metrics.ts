import { Counter, Gauge, type Registry } from "prom-client";

/** What Prometheus is told, beside what the bridge library counts. */
export function createMetrics(registry: Registry) {
  const registers = [registry];
  return {
    received: new Counter({
      name: "clevernet_events_received_total",
      help: "Events that the homeserver pushed",
      registers,
    }),
    swept: new Counter({ name: "clevernet_events_swept_total", help: "Events that only the sweep found", registers }),
    outbox: new Counter({
      name: "clevernet_outbox_total",
      help: "What became of attempts to send",
      labelNames: ["outcome"],
      registers,
    }),
    running: (count: () => number) =>
      new Gauge({
        name: "clevernet_turns_running",
        help: "Turns at work in this process",
        registers,
        collect() {
          this.set(count());
        },
      }),
  };
}
