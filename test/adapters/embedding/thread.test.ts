import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EmbeddingThread } from "../../../src/adapters/embedding/thread.ts";
import { randomModel, writeModel } from "../../support/random-model.ts";

let dir: string;
let threads: EmbeddingThread[];
/** Workers that were started, in their order. */
let workers: Worker[];
const noteWorker = (worker: Worker) => void workers.push(worker);

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-model-"));
  threads = [];
  workers = [];
  process.on("worker", noteWorker);
});
afterEach(async () => {
  process.off("worker", noteWorker);
  for (const thread of threads) await thread.stop();
  await rm(dir, { recursive: true });
});

const open = (idleMs?: number): EmbeddingThread => {
  const thread = new EmbeddingThread(dir, idleMs);
  threads.push(thread);
  return thread;
};
const cosine = (a: Float32Array | undefined, b: Float32Array | undefined): number =>
  (a ?? new Float32Array()).reduce((sum, value, index) => sum + value * (b?.[index] ?? 0), 0);
const failureOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "nothing failed",
    (error: Error) => error.message,
  );

describe("vectors of a local model", () => {
  beforeEach(() => writeModel(dir));

  it("have a length of 1, one for each text", async () => {
    const vectors = await open().embed(["Mia likes green tea.", "", "zażółć 42 🦊\u0000", "tea ".repeat(2_000)]);
    expect(vectors.map((vector) => vector.length)).toEqual([32, 32, 32, 32]);
    for (const vector of vectors) expect(cosine(vector, vector)).toBeCloseTo(1, 5);
  });

  it("are the same whatever other texts are embedded with it", async () => {
    const thread = open();
    const texts = ["Mia likes green tea.", "the dog", "a cat in the rain ".repeat(30), "we read"];
    const together = await thread.embed(texts);
    for (const [index, text] of texts.entries())
      expect(cosine((await thread.embed([text]))[0], together[index])).toBeCloseTo(1, 5);
  });

  it("are closer where the texts are about the same", async () => {
    const [tea, likes, server] = await open().embed([
      "green tea",
      "Mia likes green tea",
      "backup of the database server",
    ]);
    expect(cosine(tea, likes)).toBeGreaterThan(cosine(tea, server) + 0.2);
  });

  it("count the first 256 tokens of a text", async () => {
    const start = "tea ".repeat(254);
    const within = `${"tea ".repeat(230)} server database in the rain`;
    const [one, beyond, changed] = await open().embed([start, `${start} server database`, within]);
    expect(cosine(one, beyond)).toBeCloseTo(1, 6);
    expect(cosine(one, changed)).toBeLessThan(0.99999);
  });

  it("come to an urgent call before all that waits", async () => {
    const thread = open();
    const done: string[] = [];
    const long = thread.embed(Array.from({ length: 60 }, () => "tea ".repeat(120))).then(() => done.push("long"));
    const urgent = thread.embed(["green tea"], true).then(() => done.push("urgent"));
    await Promise.all([long, urgent]);
    expect(done).toEqual(["urgent", "long"]);
  });
});

describe("the thread of a local model", () => {
  beforeEach(() => writeModel(dir));

  it("is started by the first text, not before", async () => {
    const thread = open();
    expect([thread.isLoaded, workers.length]).toEqual([false, 0]);
    await thread.embed(["tea"]);
    expect([thread.isLoaded, workers.length]).toEqual([true, 1]);
  });

  it("ends when it was idle for a while, and is started again", async () => {
    const thread = open(50);
    await thread.embed(["tea"]);
    await expect.poll(() => thread.isLoaded).toBe(false);
    await expect.poll(() => workers[0]?.threadId).toBe(-1);
    expect(await thread.embed(["tea"])).toHaveLength(1);
    expect(workers).toHaveLength(2);
  });

  it("that dies fails the texts that it was at, and the next are embedded by another", async () => {
    const thread = open();
    const first = failureOf(thread.embed(["tea"]));
    const second = thread.embed(["green tea"]);
    await expect.poll(() => workers.length, { interval: 1 }).toBe(1);
    await workers[0]?.terminate();
    expect(await first).toContain("gave up");
    expect(await second).toHaveLength(1);
  });

  it("that is stopped ends the texts that it is at, and gives up the others", async () => {
    const thread = open();
    const first = thread.embed(["tea"]);
    const second = failureOf(thread.embed(["green tea"]));
    await thread.stop();
    expect(await first).toHaveLength(1);
    expect(await second).toContain("was stopped");
    expect(await failureOf(thread.embed(["tea"]))).toContain("was stopped");
    expect(workers[0]?.threadId).toBe(-1);
  });
});

describe("a folder", () => {
  it.each([
    ["without the model", { "tokenizer.json": randomModel()["tokenizer.json"] }, "model.onnx"],
    ["without the tokenizer", { "onnx/model.onnx": randomModel()["onnx/model.onnx"] }, "tokenizer.json"],
    ["whose tokenizer is none", { ...randomModel(), "tokenizer.json": Buffer.from("<html>") }, "tokenizer.json"],
    ["whose model is none", { ...randomModel(), "onnx/model.onnx": Buffer.from("<html>") }, "model.onnx"],
  ])("%s fails each text, and names the file", async (_, files, name) => {
    await writeModel(dir, files as Record<string, Buffer>);
    const thread = open();
    for (const text of ["tea", "coffee"])
      expect(await failureOf(thread.embed([text]))).toContain(join(dir, name === "model.onnx" ? "onnx" : "", name));
    expect(thread.isLoaded).toBe(false);
  });

  it("whose model was cut off is read again once it is whole", async () => {
    await writeModel(dir);
    const model = join(dir, "onnx", "model.onnx");
    await truncate(model, 20_000);
    const thread = open();
    expect(await failureOf(thread.embed(["tea"]))).toContain(`${model} is damaged`);
    await writeFile(model, randomModel()["onnx/model.onnx"] ?? "");
    expect(await thread.embed(["tea"])).toHaveLength(1);
  });
});
