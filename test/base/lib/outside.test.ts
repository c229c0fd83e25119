import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fetchWithin, networkReason, OverLimit } from "../../../src/base/lib/outside.ts";

let server: Server;
let answer: (response: ServerResponse) => void;
let closed: Promise<unknown>;
let url: string;
beforeEach(async () => {
  server = createServer((_, response) => {
    closed = new Promise((resolve) => response.on("close", resolve));
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const limits = { ms: 400, bytes: 100_000 };
const read = async (init: RequestInit = {}) => (await fetchWithin(url, init, limits)).text();
/** A byte now and then, for ever. */
const drip = (response: ServerResponse): void => {
  const timer = setInterval(() => response.write(" "), 20);
  response.on("close", () => clearInterval(timer));
};
const flood = (response: ServerResponse): void => {
  const more = () => {
    while (!response.destroyed) if (!response.write("x".repeat(65_536))) return void response.once("drain", more);
  };
  more();
};

describe("an answer from outside", () => {
  it("is given as it came", async () => {
    answer = (response) => response.writeHead(418, { "x-word": "tea" }).end("x".repeat(limits.bytes));
    const response = await fetchWithin(url, {}, limits);
    expect([response.status, response.headers.get("x-word")]).toEqual([418, "tea"]);
    expect(await response.text()).toHaveLength(limits.bytes);
  });

  it("may be empty", async () => {
    answer = (response) => response.writeHead(204).end();
    expect(await read()).toBe("");
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["does not begin", () => {}],
    ["drips", drip],
    ["drips after a whole beginning", (response) => void response.write('{"event_id":"$a"}', () => drip(response))],
  ])("that %s ends by its time, and with it the connection", async (_, give) => {
    answer = give;
    await expect(read()).rejects.toMatchObject({ name: "OverLimit", limit: "time" });
    await closed;
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["never ends", flood],
    ["says so before", (response) => void response.writeHead(200, { "content-length": 1e12 }).write("x")],
    [
      "grows when it is unpacked",
      (response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("x".repeat(1_000_000))),
    ],
  ])("that is too large and %s is let go", async (_, give) => {
    answer = give;
    await expect(read()).rejects.toMatchObject({ name: "OverLimit", limit: "size" });
    await closed;
  });

  it("that was whole in time may be used later", async () => {
    answer = (response) => response.end("whole");
    const response = await fetchWithin(url, {}, limits);
    const text = response.text();
    await sleep(limits.ms + 100);
    expect(await text).toBe("whole");
  });

  it("is not waited for when nobody wants it any more", async () => {
    answer = drip;
    const gone = new AbortController();
    const response = await fetchWithin(url, { signal: gone.signal }, limits);
    gone.abort(new Error("enough"));
    await expect(response.text()).rejects.toThrow("enough");
    await closed;
  });

  it("that does not come has a reason", async () => {
    const thrown = await fetchWithin("http://127.0.0.1:1/", {}, limits).catch((error: unknown) => error);
    expect(networkReason(thrown).message).toMatch(/ECONNREFUSED|bad port/);
    expect(networkReason(new TypeError("terminated", { cause: new OverLimit("time", "late") })).message).toBe("late");
  });
});
