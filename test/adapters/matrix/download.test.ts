import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HomeserverError } from "../../../src/adapters/matrix/client.ts";
import { download, TooLarge } from "../../../src/adapters/matrix/download.ts";

const limit = 1_000_000;
const limits = { ms: 1_000, bytes: limit };
const never = new AbortController().signal;
let asked: { url: string | undefined; authorization: string | undefined };
let answer: (response: ServerResponse) => void;
/** Bytes that the server could give away. */
let given: number;
let closed: Promise<unknown>;
const server = createServer((request, response) => {
  asked = { url: request.url, authorization: request.headers.authorization };
  closed = new Promise((resolve) => response.on("close", resolve));
  answer(response);
});
beforeEach(async () => {
  given = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const get = (signal = never) => {
  const { port } = server.address() as AddressInfo;
  return download({ url: `http://127.0.0.1:${port}`, token: "secret" }, "mxc://test.org:8448/aB_-", limits, signal);
};
/** Gives bytes away for as long as somebody takes them. */
const flood = (response: ServerResponse): void => {
  const chunk = Buffer.alloc(65_536);
  const more = () => {
    while (!response.destroyed) {
      given += chunk.length;
      if (!response.write(chunk)) return void response.once("drain", more);
    }
  };
  more();
};

describe("a file of the homeserver", () => {
  it("is read whole, with the token, from the authenticated endpoint", async () => {
    answer = (response) => response.end(Buffer.alloc(limit, "x"));
    expect(await get()).toEqual(Buffer.alloc(limit, "x"));
    expect(asked).toEqual({
      url: "/_matrix/client/v1/media/download/test.org%3A8448/aB_-",
      authorization: "Bearer secret",
    });
  });

  it("is not begun where its size is said to be too large", async () => {
    answer = (response) => {
      response.writeHead(200, { "content-length": String(1e12) });
      flood(response);
    };
    await expect(get()).rejects.toThrow("it has 1000000000000 bytes");
    await closed;
    expect(given).toBeLessThan(20_000_000);
  });

  it("is let go as soon as it turns out to be too large", async () => {
    answer = (response) => {
      response.writeHead(200);
      flood(response);
    };
    await expect(get()).rejects.toThrow(TooLarge);
    await closed;
    expect(given).toBeLessThan(20_000_000);
  });

  it("that never ends may come later", async () => {
    answer = (response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write("x"), 50);
      response.on("close", () => clearInterval(timer));
    };
    const error = await get().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "HomeserverError", isFinal: false });
    expect(String(error)).toContain("no whole answer within 1 s");
    await closed;
  });

  it("that is refused is an error with the homeserver's words", async () => {
    answer = (response) => {
      response.writeHead(429, { "content-type": "application/json" });
      response.end(JSON.stringify({ errcode: "M_LIMIT_EXCEEDED", error: "Too Many Requests", retry_after_ms: 1_500 }));
    };
    const error = await get().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 429, errcode: "M_LIMIT_EXCEEDED", retryAfterMs: 1_500, isFinal: false });
  });

  it("that is not there is refused for good", async () => {
    answer = (response) => {
      response.writeHead(404);
      response.end(JSON.stringify({ errcode: "M_NOT_FOUND", error: "Not found" }));
    };
    expect(await get().catch((thrown: unknown) => thrown)).toMatchObject({ status: 404, isFinal: true });
  });

  it("that a gateway does not find may come later", async () => {
    answer = (response) => {
      response.writeHead(404);
      response.end("<html>");
    };
    expect(await get().catch((thrown: unknown) => thrown)).toMatchObject({ status: 404, isFinal: false });
  });

  it("that breaks off may come later", async () => {
    answer = (response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("half");
      setImmediate(() => response.destroy());
    };
    const error = await get().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HomeserverError);
    expect(error).toMatchObject({ status: 0, isFinal: false });
  });

  it("is not waited for when nobody wants it any more", async () => {
    answer = () => {};
    const gone = new AbortController();
    const waiting = get(gone.signal);
    gone.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});
