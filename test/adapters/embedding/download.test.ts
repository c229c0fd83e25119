import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { downloadModel } from "../../../src/adapters/embedding/download.ts";
import { identifyModel } from "../../../src/adapters/embedding/model-files.ts";
import { Listener } from "../../support/listener.ts";
import { eventually } from "../../support/poll.ts";
import { randomModel, releaseOf, writeModel } from "../../support/random-model.ts";

const files = randomModel();
const model = files["onnx/model.onnx"] ?? Buffer.alloc(0);
const half = Math.floor(model.length / 2);

let dir: string;
let host: Listener;
let asked: { readonly path: string; readonly range: string | undefined }[];
/** Answers in place of the host's own, one request each. */
let others: ((request: IncomingMessage, response: ServerResponse, bytes: Buffer) => void)[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-download-"));
  asked = [];
  others = [];
  const server = createServer((request, response) => {
    const path = request.url?.slice("/model/".length) ?? "";
    const { range } = request.headers;
    asked.push({ path, range });
    const bytes = files[path] ?? Buffer.alloc(0);
    const other = others.shift();
    if (other) return other(request, response, bytes);
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
    if (from > 0) response.writeHead(206, { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` });
    response.end(bytes.subarray(from));
  });
  host = new Listener(server);
  await host.accept();
});
afterEach(async () => {
  await host.refuse();
  await rm(dir, { recursive: true });
});

const release = () => releaseOf(files, { url: `http://127.0.0.1:${host.port}/model` });
const progress: number[] = [];
const fetchIt = async (signal = new AbortController().signal): Promise<string> => {
  progress.length = 0;
  const { url } = release();
  const onProgress = (done: number, total: number) => void progress.push(done / total);
  return downloadModel({ release: release(), dir, url, owner: "me", signal, onProgress }).then(
    () => "fetched",
    (error: Error) => error.message,
  );
};
const stored = async () => (await readdir(dir, { recursive: true })).filter((name) => /\./.test(name)).sort();

describe("a model that is fetched", () => {
  it("is what was published, and nothing else is left of it", async () => {
    expect(await fetchIt()).toBe("fetched");
    expect(await stored()).toEqual(["onnx/model.onnx", "tokenizer.json"]);
    expect(await readFile(join(dir, "onnx/model.onnx"))).toEqual(model);
    expect(await identifyModel(dir, release())).toMatchObject({ model: "random-model", dimensions: 32 });
  });

  it("tells how far it is, up to the end", async () => {
    await fetchIt();
    expect(progress.at(-1)).toBe(1);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  });

  it("lacks nothing that is there already: only the rest is asked for", async () => {
    await writeModel(dir, { "tokenizer.json": Buffer.from("of somebody's own") });
    expect(await fetchIt()).toBe("fetched");
    expect(asked.map(({ path }) => path)).toEqual(["onnx/model.onnx"]);
    expect(await readFile(join(dir, "tokenizer.json"), "utf8")).toBe("of somebody's own");
  });

  it("goes on where the line went down", async () => {
    others = [
      (_, response, bytes) => response.end(bytes),
      (_, response, bytes) => {
        response.writeHead(200, { "content-length": bytes.length });
        response.write(bytes.subarray(0, half));
        void eventually(async () => (await stored()).includes("onnx/model.onnx.me.part"), { what: "a part of it" })
          .then(() =>
            eventually(async () => (await stat(join(dir, "onnx/model.onnx.me.part"))).size > 0, { what: "it" }),
          )
          .then(() => host.cut());
      },
    ];
    expect(await fetchIt()).toBe("fetched");
    expect(asked.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/);
    expect(await readFile(join(dir, "onnx/model.onnx"))).toEqual(model);
  });

  it("goes on behind what an earlier process has fetched", async () => {
    await writeModel(dir, { "onnx/model.onnx.me.part": model.subarray(0, half) });
    expect(await fetchIt()).toBe("fetched");
    expect(asked.at(-1)?.range).toBe(`bytes=${half}-`);
    expect(await stored()).toEqual(["onnx/model.onnx", "tokenizer.json"]);
  });

  it("begins again where the server sends the whole file nevertheless", async () => {
    await writeModel(dir, { "onnx/model.onnx.me.part": model.subarray(0, half) });
    others = [(_, response, bytes) => response.end(bytes), (_, response, bytes) => response.end(bytes)];
    expect(await fetchIt()).toBe("fetched");
    expect(await readFile(join(dir, "onnx/model.onnx"))).toEqual(model);
  });

  it("is thrown away where its checksum is another, and never gets its name", async () => {
    others = [
      (_, response, bytes) => response.end(bytes),
      (_, response, bytes) => response.end(Buffer.alloc(bytes.length)),
    ];
    expect(await fetchIt()).toMatch(/model\.onnx: it is not the file that was published.*expected [0-9a-f]{64}/);
    expect(await stored()).toEqual(["tokenizer.json"]);
  });

  it("is given up where it is longer than the published file", async () => {
    others = [(_, response) => response.end("x".repeat(1_000_000))];
    expect(await fetchIt()).toMatch(/tokenizer\.json: it has (more than )?\d+ bytes/);
    expect(await stored()).not.toContain("tokenizer.json");
  });

  it("is given up where the server refuses it, and says what to do", async () => {
    others = [(_, response) => response.writeHead(404).end("no such file")];
    const failure = await fetchIt();
    expect(failure).toContain(`${release().url}/tokenizer.json: it answers 404`);
    expect(failure).toContain(`put tokenizer.json and onnx/model.onnx of ${release().url} into ${dir}`);
  });

  it("is given up without a network, and says what was tried and what to do", async () => {
    await host.refuse();
    const failure = await fetchIt();
    expect(failure).toContain(`cannot be fetched from ${release().url}/tokenizer.json: `);
    expect(failure).toMatch(/ECONNREFUSED.*put tokenizer\.json/);
  });

  it("is given up where the folder cannot be made, and says so", async () => {
    await writeFile(join(dir, "onnx"), "a file in the way");
    expect(await fetchIt()).toMatch(/EEXIST|ENOTDIR/);
  });

  it("keeps what has come when the process is asked to end", async () => {
    const ending = new AbortController();
    await mkdir(dir, { recursive: true });
    others = [
      (_, response, bytes) => response.end(bytes),
      (_, response, bytes) => void response.write(bytes.subarray(0, half)),
    ];
    const failing = fetchIt(ending.signal);
    await expect.poll(() => progress.at(-1) ?? 0).toBeGreaterThan(0.3);
    ending.abort(new Error("the end"));
    expect(await failing).toBe("the end");
    expect(await stored()).toContain("onnx/model.onnx.me.part");
  });
});

describe("a folder", () => {
  it("with other files has another model, named after the folder and its contents", async () => {
    await writeModel(dir, randomModel({ seed: 8 }));
    const { model: other } = await identifyModel(dir, release());
    expect(other).toMatch(/^clevernet-download-\w+-[0-9a-f]{8}$/);
    await writeModel(dir, randomModel({ seed: 9 }));
    expect((await identifyModel(dir, release())).model).not.toBe(other);
  });

  it("that lacks a file is not complete, and the file is named", async () => {
    await writeModel(dir, { "tokenizer.json": files["tokenizer.json"] ?? Buffer.alloc(0) });
    await expect(identifyModel(dir, release())).rejects.toThrow(`onnx/model.onnx of it is not in ${dir}`);
  });
});
