import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Endpoint } from "../../../src/adapters/embedding/endpoint.ts";
import { Listener } from "../../support/listener.ts";

interface Asked {
  readonly input: readonly string[];
  readonly model: string;
  readonly key: string | undefined;
}
type Reply = { readonly status?: number; readonly headers?: Record<string, string>; readonly body: unknown };

let server: Listener;
let asked: Asked[];
let slept: number[];
/** Replies in place of the usual ones, one request each. */
let replies: Reply[];

const vectorOf = (text: string): number[] => [text.length + 1, 1, 0];
const usual = ({ input }: Asked): Reply => ({
  body: { data: input.map((text, index) => ({ index, embedding: vectorOf(text) })).reverse() },
});

beforeEach(async () => {
  [asked, slept, replies] = [[], [], []];
  server = new Listener(
    createServer(async (request, response) => {
      const { input, model } = (await json(request)) as Asked;
      const question = { input, model, key: request.headers.authorization };
      asked.push(question);
      const { status = 200, headers = {}, body } = replies.shift() ?? usual(question);
      response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
    }),
  );
  await server.accept();
});
afterEach(() => server.refuse());

const endpoint = (apiKey?: string) =>
  new Endpoint({
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    apiKey,
    name: "some-embedder",
    clock: { sleep: async (ms) => void slept.push(ms) },
  });
const failureOf = (promise: Promise<unknown>): Promise<{ message: string; kind?: string }> =>
  promise.then(
    () => ({ message: "nothing failed" }),
    (error: Error) => error,
  );

describe("an endpoint", () => {
  it("says with its first answer how many numbers its vectors have", async () => {
    expect(await endpoint().open()).toMatchObject({ model: "some-embedder@3", dimensions: 3 });
  });

  it("gives one vector of length 1 for each text, in the order of the texts", async () => {
    const vectors = await endpoint().embed(["a", "bcd", ""]);
    // An empty text is sent as a blank.
    const expected = ["a", "bcd", " "]
      .map(vectorOf)
      .map((vector) => vector.map((value) => value / Math.hypot(...vector)));
    for (const [index, vector] of vectors.entries())
      for (const [d, value] of vector.entries()) expect(value).toBeCloseTo(expected[index]?.[d] ?? 9, 5);
  });

  it("is asked for many texts in parts, with the key", async () => {
    expect(await endpoint("sk-secret").embed(Array.from({ length: 150 }, (_, n) => `text ${n}`))).toHaveLength(150);
    expect(asked.map(({ input }) => input.length)).toEqual([64, 64, 22]);
    expect(asked[0]).toMatchObject({ model: "some-embedder", key: "Bearer sk-secret" });
  });

  it("is asked again after the time that it wants", async () => {
    replies = [
      { status: 429, headers: { "retry-after": "7" }, body: "slow down" },
      { status: 503, body: "" },
    ];
    expect(await endpoint().embed(["a"])).toHaveLength(1);
    expect(slept).toEqual([7_000, 2_000]);
  });

  it("is given up for now where it goes on refusing, or wants more than a minute", async () => {
    replies = Array.from({ length: 4 }, () => ({ status: 500, body: "broken" }));
    expect(await failureOf(endpoint().embed(["a"]))).toMatchObject({ kind: "unavailable" });
    expect(asked).toHaveLength(4);
    replies = [{ status: 429, headers: { "retry-after": "3600" }, body: "tomorrow" }];
    expect(await failureOf(endpoint().embed(["a"]))).toMatchObject({ kind: "unavailable" });
    expect(asked).toHaveLength(5);
  });

  it("is not asked again where it refuses the key, which nobody is shown", async () => {
    replies = [{ status: 401, body: "wrong key sk-secret" }];
    const { message, kind } = await failureOf(endpoint("sk-secret").embed(["a"]));
    expect(message).toContain("it answered 401: wrong key [key] – check baseUrl, name and key of embeddings");
    expect([kind, asked.length]).toEqual(["misconfigured", 1]);
  });

  it("may answer later that is not there now", async () => {
    const gone = endpoint();
    await server.refuse();
    const failure = await failureOf(gone.embed(["a"]));
    expect(failure).toMatchObject({ kind: "unavailable" });
    expect(failure.message).toContain("ECONNREFUSED");
  });

  it("may refuse texts, which it is not sent again", async () => {
    replies = [{ status: 400, body: "too long" }];
    expect(await failureOf(endpoint().embed(["a"]))).toMatchObject({ kind: "refused" });
    expect(asked).toHaveLength(1);
  });

  it.each([
    ["no JSON", "<html>"],
    ["too few vectors", { data: [] }],
    ["no numbers", { data: [{ index: 0, embedding: ["a"] }] }],
    ["nothing but zeros", { data: [{ index: 0, embedding: [0, 0, 0] }] }],
    ["an empty vector", { data: [{ index: 0, embedding: [] }] }],
    ["more numbers than a vector may have", { data: [{ index: 0, embedding: Array(20_000).fill(1) }] }],
  ])("that answers with %s is refused", async (_, body) => {
    replies = [{ body }];
    const { message, kind } = await failureOf(endpoint().embed(["a"]));
    expect(message).toContain("gives no vectors: it answered with");
    expect(kind).toBe("misconfigured");
  });

  it("whose vectors have another number of dimensions than before is refused", async () => {
    const one = endpoint();
    await one.embed(["a"]);
    replies = [{ body: { data: [{ index: 0, embedding: [1, 2] }] } }];
    expect((await failureOf(one.embed(["a"]))).message).toContain("a vector of 2 numbers, and before with 3");
  });
});
