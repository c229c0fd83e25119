import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identifyModel, miniLm } from "../../../src/adapters/embedding/model-files.ts";
import { EmbeddingThread } from "../../../src/adapters/embedding/thread.ts";

/** Folder with the real model: tests that need it are left out without it. */
const dir = process.env.EMBEDDINGS_MODEL_DIR;

/** Beginnings of vectors, as sentence-transformers gives them. */
const golden: readonly [string, readonly number[]][] = [
  ["This is an example sentence", [0.06766, 0.0635, 0.04871, 0.07931, 0.03745, 0.00265, 0.03937, -0.0071]],
  ["Mia likes green tea.", [-0.02658, -0.03878, 0.0573, -0.01121, 0.02822, 0.06031, 0.09754, 0.00847]],
  ["zażółć gęślą jaźń 42", [-0.07026, 0.16747, -0.06853, 0.05898, -0.11342, 0.00629, 0.05963, 0.04202]],
];

describe.skipIf(!dir)("all-MiniLM-L6-v2", () => {
  let thread: EmbeddingThread;
  beforeAll(() => {
    thread = new EmbeddingThread(dir ?? "");
  });
  afterAll(() => thread.stop());

  it("is known by its files", async () => {
    expect(await identifyModel(dir ?? "", miniLm)).toMatchObject({ model: "all-MiniLM-L6-v2", dimensions: 384 });
  });

  it.each(golden)("gives the published vector of %s", async (text, expected) => {
    const [vector] = await thread.embed([text]);
    expect(vector).toHaveLength(384);
    for (const [index, value] of expected.entries()) expect(vector?.[index]).toBeCloseTo(value, 4);
  });

  it("gives them in a batch with other texts, too", async () => {
    const texts = [...golden.map(([text]) => text), "a long text about something else ".repeat(60), ""];
    const vectors = await thread.embed(texts);
    for (const [place, [, expected]] of golden.entries())
      for (const [index, value] of expected.entries()) expect(vectors[place]?.[index]).toBeCloseTo(value, 4);
  });

  it("knows what belongs together without a common word", async () => {
    const [question, answer, other] = await thread.embed([
      "Which drink does she prefer?",
      "Mia likes green tea.",
      "The backup of the server has failed.",
    ]);
    const dot = (a?: Float32Array, b?: Float32Array) =>
      (a ?? new Float32Array()).reduce((sum, x, index) => sum + x * (b?.[index] ?? 0), 0);
    expect(dot(question, answer)).toBeGreaterThan(dot(question, other) + 0.2);
  });
});
