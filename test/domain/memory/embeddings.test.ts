import { mkdtemp, rm, truncate } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Embedder } from "../../../src/adapters/embedding/embedder.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type EmbeddingSettings, Embeddings } from "../../../src/domain/memory/embeddings.ts";
import { Listener } from "../../support/listener.ts";
import { randomModel, releaseOf, writeModel } from "../../support/random-model.ts";

const files = randomModel();
let dir: string;
let host: Listener;
let embeddings: Embeddings | undefined;
/** Lines of the log that people read. */
let said: string[];

beforeEach(async () => {
  said = [];
  dir = await mkdtemp(join(tmpdir(), "clevernet-embeddings-"));
  host = new Listener(createServer((request, response) => response.end(files[request.url?.slice("/m/".length) ?? ""])));
  await host.accept();
});
afterEach(async () => {
  await embeddings?.stop();
  embeddings = undefined;
  await host.refuse();
  await rm(dir, { recursive: true });
});

const url = () => `http://127.0.0.1:${host.port}/m`;
const log = Object.assign(Object.create(silentLog), {
  info: (...words: unknown[]) => void said.push(String(words.at(-1))),
  warn: (...words: unknown[]) => void said.push(String(words.at(-1))),
});
const open = (
  settings: EmbeddingSettings,
  options: { idleMs?: number; sleep?: () => Promise<void> } = {},
): Embeddings => {
  const clock = { ...systemClock, ...(options.sleep && { sleep: options.sleep }) };
  embeddings = new Embeddings({
    settings,
    instance: "here:1",
    clock,
    log,
    release: releaseOf(files, { url: url() }),
    ...options,
  });
  embeddings.start();
  return embeddings;
};
const local = (downloadFrom?: string) => open({ kind: "local", dir, downloadFrom });
const modelOf = async (opened: Embeddings): Promise<Embedder> => {
  await expect.poll(() => opened.present).toBeDefined();
  return opened.present as Embedder;
};

describe("a local model", () => {
  it("is used from its folder, and not loaded before it is needed", async () => {
    await writeModel(dir, files);
    const opened = local();
    expect(await modelOf(opened)).toMatchObject({ model: "random-model", dimensions: 32 });
    expect(opened.state).toEqual({ by: "meaning", model: "random-model", dimensions: 32 });
    expect(opened.isLoaded).toBe(false);
    expect(said).toEqual(["memory is searched by words and by meaning"]);
  });

  it("is fetched into an empty folder, in the background", async () => {
    const opened = local(url());
    expect(opened.state.by).toBe("words");
    expect((await modelOf(opened)).model).toBe("random-model");
    expect(said[0]).toBe("the embedding model random-model is fetched in the background");
    expect(said).toContain("100 % of the embedding model are fetched");
  });

  it("that cannot be fetched is said once, is tried again, and used when it is there", async () => {
    await host.refuse();
    let attempts = 0;
    const opened = open(
      { kind: "local", dir, downloadFrom: url() },
      {
        async sleep() {
          if (++attempts === 3) await host.accept();
        },
      },
    );
    expect((await modelOf(opened)).model).toBe("random-model");
    expect(attempts).toBe(3);
    expect(said.filter((line) => line.startsWith("memory is searched by words alone"))).toHaveLength(1);
  });

  it("is not fetched where that is not wanted, and it is said where its files belong", async () => {
    const opened = local();
    await expect.poll(() => said.length).toBe(1);
    expect(said[0]).toContain(`there is no embedding model in ${dir}, and none is fetched. To do it by hand, put`);
    expect(opened.state).toMatchObject({ by: "words" });
    expect(opened.forQuestions).toBeUndefined();
  });

  it("of another version has another name, and says itself how many numbers its vectors have", async () => {
    await writeModel(dir, randomModel({ dimensions: 16, seed: 3 }));
    const model = await modelOf(local());
    expect(model.model).toMatch(/^clevernet-embeddings-\w+-[0-9a-f]{8}$/);
    expect(model.dimensions).toBe(16);
  });

  it("that is damaged is not used, and the file is named", async () => {
    await writeModel(dir, files);
    await truncate(join(dir, "onnx", "model.onnx"), 1_000);
    const opened = local();
    await expect.poll(() => said.length).toBe(1);
    expect(said[0]).toContain(`${join(dir, "onnx", "model.onnx")} is damaged`);
    expect(opened.present).toBeUndefined();
  });
});

describe("a question", () => {
  it("waits hardly at all while the model is not loaded, and loads it", async () => {
    await writeModel(dir, files);
    const opened = local();
    await modelOf(opened);
    const questions = opened.forQuestions;
    expect(questions?.patienceMs).toBe(10);
    expect((await questions?.embed(["green tea"]))?.[0]).toHaveLength(32);
    expect(opened.isLoaded).toBe(true);
    expect(opened.forQuestions?.patienceMs).toBe(50);
  });

  it("waits longer for an endpoint, which is somewhere else", async () => {
    const server = new Listener(
      createServer((_, response) => response.end(JSON.stringify({ data: [{ index: 0, embedding: [1, 2] }] }))),
    );
    await server.accept();
    const opened = open({
      kind: "endpoint",
      baseUrl: `http://127.0.0.1:${server.port}`,
      apiKey: undefined,
      name: "far",
    });
    expect((await modelOf(opened)).model).toBe("far@2");
    expect(opened.forQuestions).toMatchObject({ model: "far@2", patienceMs: 300 });
    await server.refuse();
  });
});

describe("embeddings that are off", () => {
  it("say so, and give nothing", async () => {
    const opened = open({ kind: "off" });
    expect(said).toEqual(["memory is searched by words alone: embeddings are off"]);
    expect(opened.forQuestions).toBeUndefined();
  });
});
