import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ChatModelOptions, createChatModel } from "../../../src/adapters/model/chat.ts";
import { ModelError } from "../../../src/adapters/model/failure.ts";
import type { ChatRequest } from "../../../src/adapters/model/types.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { ScriptedModel, type Step } from "../../support/scripted-model.ts";

const apiKey = "sk-secret-key";
const request: ChatRequest = {
  model: "test-model",
  temperature: 0.5,
  messages: [
    { role: "system", content: "You are a test." },
    { role: "user", content: "hello" },
  ],
  tools: [],
  mayCallInParallel: true,
  sessionId: "s",
};

let server: ScriptedModel;
// Backoff passes at once; the watch for silence stands still until a test moves the clock.
let clock: ReturnType<typeof fixedClock>;
const never = new AbortController().signal;

beforeEach(async () => {
  server = await new ScriptedModel().start();
  clock = fixedClock({ instantBelow: 100_000 });
});
afterEach(() => server.stop());

const chat = (options: Partial<ChatModelOptions> = {}) =>
  createChatModel({ baseUrl: server.url, apiKey, clock, log: silentLog, random: () => 0, ...options });
const complete = (options?: Partial<ChatModelOptions>) => chat(options).complete(request, never);
const failure = async (options?: Partial<ChatModelOptions>): Promise<ModelError> => {
  const error = await complete(options).catch((thrown: unknown) => thrown);
  if (error instanceof ModelError) return error;
  throw new Error("expected a ModelError", { cause: error });
};
/** The waits between attempts, without the watch for silence that each attempt begins. */
const waits = () => clock.sleeps.filter((ms) => ms < 100_000);

/** A clock that stands still, and tells when the client has heard something since it was last asked. */
const listeningClock = () => {
  const still = fixedClock({ instantBelow: 0 });
  let looks = 0;
  let before = 1; // the first look begins the watch, each further one has heard something
  const monotonic = () => {
    looks += 1;
    return still.monotonic();
  };
  const heard = async () => {
    await vi.waitFor(() => expect(looks).toBeGreaterThan(before), { timeout: 30_000 });
    before = looks;
  };
  return { listening: { ...still, monotonic }, heard };
};

describe("chat", () => {
  it("returns what the model said, thought and called", async () => {
    server.onEvery([{ reasoning: "hm" }, "Hello ", "you", { call: "Send_k3f9", arguments: { to: "you" } }]);
    expect(await complete()).toEqual({
      text: "Hello you",
      thought: "hm",
      reasoningDetails: [],
      toolCalls: [{ id: "call_0", name: "Send_k3f9", arguments: '{"to":"you"}' }],
      finishReason: "tool_calls",
      usage: { promptTokens: 1000, cachedTokens: 0, completionTokens: 10, costUsd: undefined, isEstimated: false },
    });
  });

  it("returns several calls of one answer", async () => {
    server.onEvery([{ call: "A" }, { call: "B", arguments: { x: "y".repeat(500) } }]);
    const { toolCalls } = await complete();
    expect(toolCalls.map((call) => call.name)).toEqual(["A", "B"]);
    expect(JSON.parse(toolCalls[1]?.arguments ?? "")).toEqual({ x: "y".repeat(500) });
  });

  it("sends messages, temperature and key", async () => {
    server.onEvery("ok");
    await complete();
    expect(server.requests[0]?.body).toMatchObject({
      model: "test-model",
      temperature: 0.5,
      messages: [...request.messages],
    });
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${apiKey}`);
  });

  it("keeps the words of the environment's OpenAI account to itself", async () => {
    process.env.OPENAI_ORG_ID = "org-of-somebody";
    server.onEvery("ok");
    await complete().finally(() => delete process.env.OPENAI_ORG_ID);
    expect(server.requests[0]?.headers).not.toHaveProperty("openai-organization");
  });

  it("works without a key", async () => {
    server.onEvery("ok");
    expect((await complete({ apiKey: "" })).text).toBe("ok");
  });

  it("estimates the tokens that the provider did not count", async () => {
    server.onEvery(["12345678", { usage: undefined }]);
    const { usage } = await complete();
    expect(usage).toMatchObject({ completionTokens: 2, isEstimated: true });
    expect(usage.promptTokens).toBeGreaterThan(5);
  });
});

describe("chat, after a failure that may pass", () => {
  const html = { status: 502, headers: { "content-type": "text/html" }, body: "<html>bad gateway</html>" };
  const broken: [string, Step[]][] = [
    ["a status 408", [{ status: 408 }]],
    ["a status 409", [{ status: 409 }]],
    ["a status 429", [{ status: 429 }]],
    ["a status 500", [{ status: 500 }]],
    ["a status 503", [{ status: 503 }]],
    ["an HTML page with a status", [html]],
    ["an HTML page instead of a stream", [{ ...html, status: 200 }]],
    ["a reset before the stream", [{ resets: true }]],
    ["a reset in the stream", ["half an answer", { resets: true }]],
    ["a cut stream", ["half an answer", { isCut: true }]],
    ["broken JSON in the stream", ["half an answer", { raw: 'data: {"choices":[{"delta":\n\n' }]],
    ["a chunk of another shape", ["half an answer", { raw: 'data: {"choices":5}\n\n' }]],
    ["an error in the stream", ["half", { raw: 'data: {"error":{"code":502,"message":"upstream"}}\n\n' }]],
    ["a stream without a finish", ["half an answer", { raw: "data: [DONE]\n\n" }, { isCut: true }]],
  ];

  it.each(broken)("tries again after %s, and returns nothing of it", async (_name, steps) => {
    server.on(/./, steps, { times: 1 }).onEvery("whole");
    expect((await complete()).text).toBe("whole");
    expect(server.requests).toHaveLength(2);
  });

  it.each(broken)("fails as unavailable when %s does not pass", async (_name, steps) => {
    server.onEvery(steps);
    expect((await failure()).kind).toBe("unavailable");
    expect(server.requests).toHaveLength(5);
  });

  it("waits twice as long before each attempt", async () => {
    server.onEvery({ status: 500 });
    await failure();
    expect(waits()).toEqual([1000, 2000, 4000, 8000]);
  });

  it("shortens the wait by chance, by a half at most", async () => {
    server.onEvery({ status: 500 });
    await failure({ random: () => 1 });
    expect(waits()).toEqual([500, 1000, 2000, 4000]);
  });

  it.each([
    ["seconds", "7", 7000],
    ["a date", new Date(fixedClock().now().getTime() + 9000).toUTCString(), 9000],
    ["a date that has passed", "Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("obeys Retry-After in %s", async (_form, header, ms) => {
    server.on(/./, { status: 429, headers: { "retry-after": header } }, { times: 1 }).onEvery("ok");
    await complete();
    expect(waits()).toEqual(ms === 0 ? [] : [ms]);
  });

  it("fails at once when it is asked to wait longer than a minute, and says so", async () => {
    server.onEvery({ status: 429, error: "slow down", headers: { "retry-after": "61" } });
    const { kind, message } = await failure();
    expect(kind).toBe("unavailable");
    expect(message).toContain("asked to wait 61 s");
    expect(server.requests).toHaveLength(1);
  });

  it("tries again after two minutes of silence", async () => {
    server.on(/./, ["half", { hangs: true }], { times: 1 }).onEvery("whole");
    const answer = complete();
    const first = await server.request(/./);
    clock.advance(120_000);
    expect((await answer).text).toBe("whole");
    await first.closed;
    expect(first.wasAborted).toBe(true);
  });

  it("does not take a stream for dead that lives on comments", async () => {
    const { listening, heard } = listeningClock();
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const comment = { raw: ": still thinking\n\n" };
    server.onEvery([comment, ...gates.flatMap((gate) => [{ wait: gate.promise }, comment]), "whole"]);
    const answer = complete({ clock: listening });
    for (const gate of gates) {
      await heard();
      listening.advance(80_000);
      gate.resolve();
    }
    expect((await answer).text).toBe("whole");
    expect(server.requests).toHaveLength(1);
  });

  it("accepts a stream that breaks after the model had finished", async () => {
    const { listening, heard } = listeningClock();
    const finish = { raw: 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n' };
    server.onEvery(["whole", finish, { wait: heard() }, { isCut: true }]);
    expect(await complete({ clock: listening })).toMatchObject({ text: "whole", usage: { isEstimated: true } });
  });
});

describe("chat, with an answer that never ends", () => {
  const finish = { raw: 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n' };
  const usage = { raw: 'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\n' };
  const chunk = (content: string) => ({ raw: `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n` });
  async function* forEver(step: Step, pauseMs: number): AsyncGenerator<Step> {
    for (;;) yield* [step, { wait: sleep(pauseMs) }];
  }

  it.each<[string, Step]>([
    ["words, one at a time", "word "],
    ["comments, for ever", { raw: ": still thinking\n\n" }],
    ["half an event", { raw: "data: {" }],
  ])("gives up for good what comes in %s, and lets go of it", async (_, step) => {
    server.onEvery(() => forEver(step, 50));
    const { kind, message } = await failure({ answerMs: 700 });
    expect(kind).toBe("unavailable");
    expect(message).toContain("no whole answer within 0.7 s");
    expect(server.requests).toHaveLength(1);
    await server.requests[0]?.closed;
  });

  it.each<[string, Step]>([
    ["text", chunk("y".repeat(50_000))],
    ["thoughts", { reasoning: "y".repeat(50_000) }],
    ["arguments", { call: "A", arguments: "y".repeat(50_000), id: "one" }],
  ])("takes no more %s than anybody reads", async (_, step) => {
    server.onEvery(() => forEver(step, 1));
    const { message } = await failure();
    expect(message).toContain("more than 1000000 characters");
    expect(server.requests).toHaveLength(1);
    await server.requests[0]?.closed;
  });

  it("takes no event that is longer than an answer may be", async () => {
    server.onEvery(() => forEver({ raw: "y".repeat(100_000) }, 1));
    const started = performance.now();
    expect((await failure()).message).toContain("an event of more than");
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(server.requests).toHaveLength(1);
  });

  it.each<[string, Step[], boolean]>([
    ["comments", [finish], true],
    ["comments, after its usage", [finish, usage], false],
    ["comments, after its last word", [finish, usage, { raw: "data: [DONE]\n\n" }], false],
  ])("is whole with its finish, whatever follows: %s", async (_, end, isEstimated) => {
    server.onEvery(async function* () {
      yield* [chunk("whole"), ...end];
      yield* forEver({ raw: ": keep-alive\n\n" }, 100);
    });
    const started = performance.now();
    expect(await complete()).toMatchObject({ text: "whole", usage: { isEstimated } });
    expect(performance.now() - started).toBeLessThan(10_000);
    await server.requests[0]?.closed;
  });

  it("is not taken for finished by an empty word", async () => {
    const half = { raw: 'data: {"choices":[{"delta":{"content":"half "},"finish_reason":""}]}\n\n' };
    server.onEvery([half, { wait: sleep(2_500) }, chunk("and half"), finish]);
    expect((await complete()).text).toBe("half and half");
  });

  it("waits a moment for the usage, which comes after the finish", async () => {
    server.onEvery([chunk("whole"), finish, { wait: sleep(500) }, usage, { usage: undefined }]);
    expect((await complete()).usage).toMatchObject({ promptTokens: 7, completionTokens: 5, isEstimated: false });
  });
});

describe("chat, after a failure that does not pass", () => {
  it.each([
    [400, "refused"],
    [401, "misconfigured"],
    [402, "out of money"],
    [403, "refused"],
    [404, "misconfigured"],
    [413, "refused"],
    [422, "refused"],
  ])("does not repeat a request that was answered %i", async (status, kind) => {
    server.onEvery({ status, headers: { "retry-after": "1" } });
    expect(await failure()).toMatchObject({ kind, status });
    expect(server.requests).toHaveLength(1);
  });

  it("does not repeat a request when the quota is used up, though the status is 429", async () => {
    const body = JSON.stringify({ error: { message: "no more", code: "insufficient_quota" } });
    server.onEvery({ status: 429, body, headers: { "content-type": "application/json" } });
    expect((await failure()).kind).toBe("out of money");
    expect(server.requests).toHaveLength(1);
  });

  it("does not repeat a request that fails for good in the middle of the stream", async () => {
    server.onEvery(["half", { raw: 'data: {"error":{"code":402,"message":"no more credits"}}\n\n' }]);
    expect(await failure()).toMatchObject({ kind: "out of money", status: 402 });
    expect(server.requests).toHaveLength(1);
  });

  it("names the model, the host, the status and the provider's words", async () => {
    server.onEvery({ status: 400, error: "the prompt is too long" });
    const { message } = await failure();
    expect(message).toBe(
      `The model test-model at ${new URL(server.url).host} answered 400 (attempt 1): the prompt is too long`,
    );
  });

  it("passes on the words of the provider behind OpenRouter", async () => {
    const error = { message: "Provider returned error", metadata: { raw: "context length exceeded" } };
    server.onEvery({ status: 400, body: JSON.stringify({ error }), headers: { "content-type": "application/json" } });
    expect((await failure()).message).toContain("Provider returned error (context length exceeded)");
  });

  it("never shows the key, and cuts long words", async () => {
    server.onEvery({ status: 401, error: `${"x".repeat(295)}${apiKey} is wrong ${"y".repeat(9999)}` });
    const { message } = await failure();
    expect(message).not.toContain("sk-");
    expect(message.length).toBeLessThan(500);
  });

  it("says why nobody could be reached", async () => {
    const gone = await new ScriptedModel().start();
    await gone.stop();
    const { kind, message } = await failure({ baseUrl: gone.url });
    expect(kind).toBe("unavailable");
    expect(message).toContain("ECONNREFUSED");
  });
});

describe("chat, with images", () => {
  const image = { label: "cat.png:", contentType: "image/png", base64: "aGk=" };
  const shown: ChatRequest = { ...request, messages: [{ role: "user", content: "what is this?", images: [image] }] };
  const last = () => server.requests.at(-1)?.body.messages[0];

  it("shows them behind the text, each after its label", async () => {
    server.onEvery("a cat");
    await chat().complete(shown, never);
    expect(last()?.content).toBe("what is this?\n\ncat.png:");
    expect(last()?.images).toEqual(["data:image/png;base64,aGk="]);
  });

  it.each([
    [404, "No endpoints found that support image input"],
    [400, "Failed to deserialize: unknown variant `image_url`, expected `text`"],
    [500, "image input is not supported - hint: you may need to provide the mmproj"],
    [400, "m is not a multimodal model"],
  ])("asks a model without eyes (%i %s) again without them, and never shows it one again", async (status, error) => {
    server.on(({ body }) => (body.messages[0]?.images.length ?? 0) > 0, { status, error });
    server.onEvery("I cannot see it");
    const retries: unknown[] = [];
    const model = chat({ onRetry: (...retry) => retries.push(retry) });
    expect((await model.complete(shown, never)).text).toBe("I cannot see it");
    expect(last()?.content).toMatch(/^what is this\?\n\ncat\.png: \(an image, which you cannot see\)$/);
    await model.complete(shown, never);
    expect(server.requests).toHaveLength(3);
    expect(retries).toEqual([["test-model", status]]);
  });

  it("leaves out images that the model did not like, this time", async () => {
    server.on(({ body }) => (body.messages[0]?.images.length ?? 0) > 0, { status: 400, error: "Invalid image" });
    server.onEvery("ok");
    const model = chat();
    await model.complete(shown, never);
    await model.complete(shown, never);
    expect(server.requests).toHaveLength(4);
  });

  it("fails as ever where the images are not to blame", async () => {
    server.onEvery({ status: 400, error: "the prompt is too long" });
    await expect(chat().complete(shown, never)).rejects.toThrow("too long");
    expect(server.requests).toHaveLength(1);
  });

  it("estimates an image's tokens by no more than it costs", async () => {
    server.onEvery(["ok", { usage: undefined }]);
    const large = { ...image, base64: "A".repeat(1_000_000) };
    const messages = [{ role: "user" as const, content: "hi", images: [large] }];
    const { usage } = await chat().complete({ ...request, messages }, never);
    expect(usage.promptTokens).toBeGreaterThan(1_000);
    expect(usage.promptTokens).toBeLessThan(2_000);
  });
});

describe("chat, with an option that the model refuses", () => {
  const temperature = "Unsupported value: 'temperature' does not support 0.5 with this model.";
  const refuses = (option: string, words: string) =>
    server.on(({ body }) => option in body, { status: 400, error: words }, { times: 1 }).onEvery("ok");
  const sent = (option: string) => server.requests.map(({ body }) => body[option as keyof typeof body]);

  it.each([
    ["temperature", {}, temperature],
    ["reasoning_effort", { reasoning: "high" }, "Unrecognized request argument supplied: reasoning_effort"],
    ["reasoning", { reasoning: 2000 }, "Unknown parameter: 'reasoning'."],
    ["max_tokens", { maxTokens: 9 }, "Unsupported parameter: 'max_tokens' is not supported with this model."],
  ] as const)("asks once more without %s", async (field, options, words) => {
    refuses(field, words);
    expect((await chat().complete({ ...request, ...options }, never)).text).toBe("ok");
    expect(sent(field)).toEqual([expect.anything(), undefined]);
    expect(server.requests[1]?.body).toEqual({ ...server.requests[0]?.body, [field]: undefined });
  });

  it("tells so once, and sends it that value no more, but another", async () => {
    refuses("temperature", temperature);
    const onRefused = vi.fn();
    const model = chat({ onRefused });
    for (const degrees of [0.5, 0.5, 0.7]) await model.complete({ ...request, temperature: degrees }, never);
    expect(sent("temperature")).toEqual([0.5, undefined, undefined, 0.7]);
    expect(onRefused.mock.calls).toEqual([[request, "temperature", temperature]]);
  });

  it("asks without each of several that are refused one after the other", async () => {
    server.on(({ body }) => "max_tokens" in body, { status: 400, error: "max_tokens: 9 > 8" });
    refuses("temperature", temperature);
    expect((await chat().complete({ ...request, maxTokens: 9 }, never)).text).toBe("ok");
    expect(server.requests).toHaveLength(3);
  });

  it("is not asked again where the words name none of those that were sent", async () => {
    server.onEvery({ status: 400, error: "max_tokens is too large" });
    expect((await failure()).kind).toBe("refused");
    expect(server.requests).toHaveLength(1);
  });
});

describe("chat, when it is stopped", () => {
  const stop = new Error("stopped by @you:example.org");

  it("ends a running stream, which the server sees, and does not try again", async () => {
    const controller = new AbortController();
    server.onEvery(["half an answer", { hangs: true }]);
    const answer = chat().complete(request, controller.signal);
    const seen = await server.request(/./);
    controller.abort(stop);
    await expect(answer).rejects.toBe(stop);
    await seen.closed;
    expect(seen.wasAborted).toBe(true);
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ["a test's clock", () => fixedClock({ instantBelow: 0 })],
    ["the system's clock", () => systemClock],
  ])("ends the wait before another attempt by %s", async (_name, makeClock) => {
    const controller = new AbortController();
    const waiting = Promise.withResolvers<void>();
    const time = makeClock();
    const sleep: typeof time.sleep = (ms, signal) => {
      const slept = time.sleep(ms, signal);
      if (ms < 100_000) waiting.resolve();
      return slept;
    };
    server.onEvery({ status: 429, headers: { "retry-after": "59" } });
    const answer = chat({ clock: { ...time, sleep } }).complete(request, controller.signal);
    await waiting.promise;
    controller.abort(stop);
    await expect(answer).rejects.toBe(stop);
    expect(server.requests).toHaveLength(1);
  });

  it("asks nothing when it was stopped before", async () => {
    await expect(chat().complete(request, AbortSignal.abort(stop))).rejects.toBe(stop);
    expect(server.requests).toHaveLength(0);
  });
});
