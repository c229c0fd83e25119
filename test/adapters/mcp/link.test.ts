import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { ServerLink } from "../../../src/adapters/mcp/link.ts";
import { WayOut } from "../../../src/adapters/web/way-out.ts";
import { listed, ToolServer } from "../../support/tool-server.ts";
import { worstGap } from "../../support/worst-gap.ts";

const calling = (tool: string, more: object = {}) => ({
  tool,
  input: { query: "x" },
  timeoutMs: 30_000,
  signal: AbortSignal.any([]),
  ...more,
});

describe("a link to a server that nobody can trust", () => {
  let server: ToolServer;
  let wayOut: WayOut;
  let link: ServerLink;
  let changes = 0;
  beforeEach(async () => {
    changes = 0;
    server = await ToolServer.start();
    server.tools = [listed("find")];
    wayOut = new WayOut({ allow: [server.door], isPatient: true });
    link = new ServerLink({
      door: {
        url: server.url,
        headers: { Authorization: "Bearer key" },
        exchange: (...request) => wayOut.exchange(...request),
      },
      onChanged: () => {
        changes += 1;
      },
    });
  });
  afterEach(async () => {
    await link.close();
    await wayOut.close();
    await server.stop();
  });

  it("lists and calls its tools with the headers of the configuration, and with no others of ours", async () => {
    expect(await link.list()).toMatchObject([{ name: "find" }]);
    expect(await link.call(calling("find"))).toMatchObject({
      isError: false,
      parts: [{ type: "text", text: "find is done" }],
    });
    expect(server.calls).toEqual([{ name: "find", input: { query: "x" } }]);
    for (const headers of server.headers) {
      expect(headers.authorization).toBe("Bearer key");
      expect(headers).not.toHaveProperty("cookie");
    }
  });

  it("never runs its patterns: neither those of arguments nor those of results", async () => {
    const pattern = { type: "object", properties: { s: { type: "string", pattern: "^(a+)+$" } } };
    server.tools = [listed("bomb", { inputSchema: pattern, outputSchema: pattern })];
    const s = `${"a".repeat(40)}!`;
    server.answer = () => ({ content: [], structuredContent: { s } });
    await link.list();
    expect(await link.call(calling("bomb", { input: { s } }))).toMatchObject({ structured: { s } });
  });

  it("hears of two thousand changes once", async () => {
    await link.list();
    await expect.poll(() => server.listeners).toBe(1);
    for (let n = 0; n < 2_000; n++) server.tell({ method: "notifications/tools/list_changed" });
    await expect.poll(() => changes).toBe(1);
    await link.list();
    expect(changes).toBe(1);
  });

  it("stops reading a list that does not end", async () => {
    server.isEndless = true;
    await expect(link.list()).rejects.toThrow("its list of tools does not end");
    expect(server.lists).toBeLessThan(20);
  });

  it("stops reading an answer that is too large, and does not hold up anything meanwhile", async () => {
    server.answer = () => ({ content: [{ type: "text", text: "x".repeat(40_000_000) }] });
    await link.list();
    const failure = { message: expect.stringContaining("more than 16000000 bytes"), mayBeDone: true };
    await expect(link.call(calling("find"))).rejects.toMatchObject(failure);
    server.tools = [listed("find", { title: "x".repeat(10_000_000) })];
    await expect(link.list()).rejects.toMatchObject({ message: expect.stringContaining("4000000"), mayBeDone: false });
  });

  it("reads one large line of a stream without holding up anything", async () => {
    await link.list();
    await expect.poll(() => server.listeners).toBe(1);
    const gap = await worstGap(async () => {
      server.tell({ method: "notifications/message", params: { level: "info", data: "x".repeat(3_000_000) } });
      server.tell({ method: "notifications/tools/list_changed" });
      await expect.poll(() => changes).toBe(1);
    });
    expect(gap).toBeLessThan(1_000);
  });

  it("gives its refusals as answers, and says in words of our own what is no answer", async () => {
    server.answer = () => ({ error: { code: -32_602, message: "do as I say" } });
    expect(await link.call(calling("find"))).toMatchObject({ isError: true, parts: [{ type: "text" }] });
    server.answer = () => "<html>do as I say";
    const failure = await link.call(calling("find")).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: "ServerFailure", message: "it sent something that is no JSON" });
  });

  it("refuses all that a server may ask of a client, and goes on", async () => {
    await link.list();
    await expect.poll(() => server.listeners).toBe(1);
    for (const method of ["sampling/createMessage", "roots/list", "elicitation/create"])
      server.tell({ id: method, method, params: {} });
    await expect.poll(() => server.answered.length).toBe(3);
    expect(server.answered).toEqual(Array(3).fill(expect.objectContaining({ code: -32_601 })));
    expect(await link.call(calling("find"))).toMatchObject({ isError: false });
  });

  it("does not wait for an answer that never comes, and does not know then what was done", async () => {
    server.answer = () => undefined;
    const failure = { message: "it did not answer in time", mayBeDone: true, isAlive: true };
    await expect(link.call(calling("find", { timeoutMs: 50 }))).rejects.toMatchObject(failure);
    server.answer = () => ({ content: [] });
    expect(await link.call(calling("find"))).toMatchObject({ parts: [] });
  });

  it("hears how far a call is, which then may take longer", async () => {
    server.answer = () => undefined;
    await link.list();
    await expect.poll(() => server.listeners).toBe(1);
    const stop = new AbortController();
    const heard: unknown[] = [];
    const called = server.nextCall();
    const call = link.call(
      calling("find", { signal: stop.signal, onProgress: (...at: unknown[]) => void heard.push(at) }),
    );
    await called;
    const tell = (params: object) =>
      server.tell({ method: "notifications/progress", params: { progressToken: server.token, ...params } });
    tell({ progress: 1, total: 3, message: "reading" });
    tell({ progress: 2 });
    await expect
      .poll(() => heard)
      .toEqual([
        ["1 of 3", "reading"],
        ["2", undefined],
      ]);
    stop.abort(new Error("stopped"));
    await expect(call).rejects.toThrow("stopped");
  });

  it("reads what the server lets it read", async () => {
    server.resources.set("notes://today", "It rains.");
    expect(await link.resources()).toMatchObject([{ uri: "notes://today", name: "about notes://today" }]);
    expect(await link.read("notes://today")).toMatchObject([{ type: "resource", resource: { text: "It rains." } }]);
    await expect(link.read("notes://none")).rejects.toMatchObject({
      name: "ServerFailure",
      message: "it refuses that (-32002)",
    });
    expect(link.isOpen).toBe(true);
  });

  it("ends a call with its signal, and with the signal's reason", async () => {
    server.answer = () => undefined;
    const stop = new AbortController();
    const called = server.nextCall();
    const call = link.call(calling("find", { signal: stop.signal }));
    await called;
    stop.abort(new Error("stopped"));
    await expect(call).rejects.toThrow("stopped");
  });

  it("knows that a server which has forgotten it did nothing, and begins anew", async () => {
    await link.list();
    server.forget();
    const failure = { isSessionLost: true, mayBeDone: false };
    await expect(link.call(calling("find"))).rejects.toMatchObject(failure);
    expect(await link.call(calling("find"))).toMatchObject({ isError: false });
  });

  it("goes nowhere but to public addresses and those that the operator allows, and follows no redirect", async () => {
    const to = (url: string) => {
      const exchange = (...request: Parameters<WayOut["exchange"]>) => wayOut.exchange(...request);
      return new ServerLink({ door: { url, headers: {}, exchange }, onChanged: () => {} });
    };
    await expect(to("http://127.0.0.1:9/mcp").list()).rejects.toMatchObject({
      message: expect.stringContaining("web.allow"),
      mayBeDone: false,
    });
    const elsewhere = createServer((_, response) =>
      response.writeHead(307, { location: "http://169.254.169.254/" }).end(),
    );
    elsewhere.listen(0, "127.0.0.1");
    await once(elsewhere, "listening");
    const door = `127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
    const out = new WayOut({ allow: [door], isPatient: true });
    const exchange = (...request: Parameters<WayOut["exchange"]>) => out.exchange(...request);
    const redirected = new ServerLink({
      door: { url: `http://${door}/mcp`, headers: {}, exchange },
      onChanged: () => {},
    });
    await expect(redirected.list()).rejects.toMatchObject({ mayBeDone: false });
    await out.close();
    elsewhere.close();
  });
});

it.each(["stateless", "reject"] as const)(
  "speaks with the server of the protocol's makers, old versions: %s",
  async (legacy) => {
    const handler = createMcpHandler(
      () => {
        const made = new McpServer({ name: "sums", version: "1" });
        const inputSchema = z.object({ a: z.number(), b: z.number() });
        made.registerTool(
          "add",
          { description: "Adds", inputSchema, annotations: { readOnlyHint: true } },
          ({ a, b }) => ({
            content: [{ type: "text", text: String(a + b) }],
          }),
        );
        return made;
      },
      { legacy },
    );
    const server = createServer(async (request, response) => {
      const body = ["GET", "HEAD"].includes(request.method ?? "") ? undefined : await buffer(request);
      const headers = Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === "string" ? [[name, value] as [string, string]] : [],
      );
      const url = `http://127.0.0.1${request.url}`;
      const answer = await handler.fetch(
        new Request(url, { method: request.method ?? "GET", headers, ...(body && { body: new Uint8Array(body) }) }),
      );
      response.writeHead(answer.status, [...answer.headers].flat());
      for await (const chunk of answer.body ?? []) response.write(chunk);
      response.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const door = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const wayOut = new WayOut({ allow: [door], isPatient: true });
    const exchange = (...request: Parameters<WayOut["exchange"]>) => wayOut.exchange(...request);
    const link = new ServerLink({ door: { url: `http://${door}/mcp`, headers: {}, exchange }, onChanged: () => {} });
    try {
      expect(await link.list()).toMatchObject([{ name: "add", annotations: { readOnlyHint: true } }]);
      expect(await link.call(calling("add", { input: { a: 1, b: 2 } }))).toMatchObject({
        isError: false,
        parts: [{ type: "text", text: "3" }],
      });
      expect(await link.call(calling("add", { input: { a: "1" } }))).toMatchObject({ isError: true });
      expect(await link.call(calling("none"))).toMatchObject({ isError: true });
    } finally {
      await link.close();
      await wayOut.close();
      server.closeAllConnections();
      server.close();
    }
  },
);
