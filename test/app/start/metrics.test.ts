import { setImmediate } from "node:timers/promises";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { createChatModel } from "../../../src/adapters/model/chat.ts";
import { createMetrics } from "../../../src/app/start/metrics.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { ScriptedModel } from "../../support/scripted-model.ts";

const request = {
  model: "scripted",
  temperature: undefined,
  messages: [{ role: "user" as const, content: "hello" }],
  tools: [],
  mayCallInParallel: true,
  sessionId: "s",
};

it("counts model calls by outcome, their tokens and their cost", async () => {
  const registry = new Registry();
  const scripted = await new ScriptedModel().start();
  scripted.on("hello", { status: 400 }, { times: 1 });
  scripted.onEvery([
    "hi",
    { usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } } },
  ]);
  const chat = createChatModel({ baseUrl: scripted.url, apiKey: "", clock: systemClock, log: silentLog });
  const priced = (_model: string, usage: Awaited<ReturnType<typeof chat.complete>>["usage"]) => ({
    ...usage,
    costUsd: 0.5,
  });
  const model = createMetrics(registry).measured(chat, { priceOf: priced }, systemClock);
  await expect(model.complete(request, new AbortController().signal)).rejects.toThrow("400");
  expect((await model.complete(request, new AbortController().signal)).text).toBe("hi");
  const text = await registry.metrics();
  for (const line of [
    'clevernet_model_call_duration_seconds_count{model="scripted",outcome="failed"} 1',
    'clevernet_model_call_duration_seconds_count{model="scripted",outcome="done"} 1',
    'clevernet_model_tokens_total{model="scripted",kind="prompt"} 7',
    'clevernet_model_tokens_total{model="scripted",kind="cached"} 4',
    'clevernet_model_tokens_total{model="scripted",kind="completion"} 3',
    'clevernet_model_cost_usd_total{model="scripted"} 0.5',
  ]) {
    expect(text.split("\n")).toContain(line);
  }
  await scripted.stop();
});

it("counts each attempt that another followed, by the status of its answer; the last is none of them", async () => {
  const registry = new Registry();
  const scripted = await new ScriptedModel().start();
  scripted.on("hello", { status: 503 }, { times: 2 });
  scripted.on("hello", () => ["half", { wait: setImmediate() }, { isCut: true }], { times: 1 });
  scripted.onEvery({ status: 429 });
  const clock = fixedClock({ instantBelow: 100_000 });
  const onRetry = createMetrics(registry).modelRetried;
  const chat = createChatModel({ baseUrl: scripted.url, apiKey: "", clock, log: silentLog, onRetry });
  await expect(chat.complete(request, new AbortController().signal)).rejects.toThrow("attempt 5");
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith("clevernet_model_retries"));
  expect(lines).toEqual([
    'clevernet_model_retries_total{model="scripted",status="503"} 2',
    'clevernet_model_retries_total{model="scripted",status="none"} 1',
    'clevernet_model_retries_total{model="scripted",status="429"} 1',
  ]);
  await scripted.stop();
});

it("tells what waits, and that the database does not answer instead of what waited before", async () => {
  const registry = new Registry();
  const metrics = createMetrics(registry);
  metrics.backlog({
    events: 2,
    eventsAge: 1.5,
    wakes: 0,
    wakesAge: 0,
    outbox: 1,
    outboxAge: 9,
    sealed: 0,
    sealedAge: 0,
    memories: 3,
    memoriesAge: 4,
  });
  const text = await registry.metrics();
  expect(text).toContain('clevernet_waiting{what="events"} 2');
  expect(text).toContain('clevernet_waiting{what="memories"} 3');
  expect(text).toContain('clevernet_waiting_age_seconds{what="outbox"} 9');
  expect(text).toContain("clevernet_database_up 1");
  metrics.backlog(undefined);
  expect(await registry.metrics()).not.toContain('clevernet_waiting{what="events"}');
  expect(await registry.metrics()).toContain("clevernet_database_up 0");
});
