import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createApplicationService } from "../../../src/adapters/matrix/appservice.ts";
import { HomeserverError, type MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { createRegistration } from "../../../src/adapters/matrix/registration.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";

let server: Server;
let client: MatrixClient;
let answer: (response: ServerResponse, request: IncomingMessage) => void;
/** Bytes that the server could give away. */
let given: number;
let closed: Promise<unknown>;

beforeEach(async () => {
  given = 0;
  server = createServer((request, response) => {
    closed = new Promise((resolve) => response.on("close", resolve));
    request.resume().on("end", () => answer(response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const homeserverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const serverName = "test.org";
  const service = await createApplicationService({
    homeserverUrl,
    serverName,
    registration: { ...createRegistration({ serverName, url: "http://127.0.0.1:1" }) },
    log: silentLog,
    onTransaction: async () => {},
    onPing: async () => {},
    onMisfit: async () => {},
    userExists: async () => false,
    mount: () => {},
  });
  client = service.client;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const as = { userId: "@agent_a:test.org" as UserId };
const room = "!room:test.org" as RoomId;
const json = (body: unknown) => (response: ServerResponse) =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
const flood = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "application/json" });
  const more = () => {
    while (!response.destroyed) {
      given += 65_536;
      if (!response.write("x".repeat(65_536))) return void response.once("drain", more);
    }
  };
  more();
};
/** A byte now and then, for ever: the connection is never silent. */
const drip = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 50);
  response.on("close", () => clearInterval(timer));
};
const send = () => client.send(as, room, { type: "m.room.message", content: { body: "hi" }, transactionId: "id" });
const errorOf = (job: Promise<unknown>) => job.catch((error: unknown) => error);

describe("an answer of the homeserver that never ends", () => {
  it.each<[string, () => Promise<unknown>]>([
    ["to what is sent", send],
    ["to a registration", () => client.register(as.userId)],
    ["to a profile", () => client.setProfile(as.userId, "A", null)],
    ["to an upload", () => client.upload(as, Buffer.from("x"), "text/plain", "x")],
  ])("%s is let go when it is too large, and may come right later", async (_, ask) => {
    answer = flood;
    const error = await errorOf(ask());
    expect(error).toBeInstanceOf(HomeserverError);
    expect(error).toMatchObject({ status: 0, isFinal: false });
    expect(String(error)).toContain("more than 1000000 bytes, the most");
    await closed;
    expect(given).toBeLessThan(20_000_000);
  });

  it("is let go when it takes too long, although there is always a byte more", async () => {
    answer = drip;
    const error = await errorOf(client.request("GET", "/_matrix/client/versions", { timeoutMs: 400 }));
    expect(String(error)).toContain("no whole answer within 0.4 s");
    await closed;
  });

  it("is no answer by which a homeserver is alive", { timeout: 15_000 }, async () => {
    answer = flood;
    expect(await client.isAlive()).toBe(false);
  });
});

describe("a request to the homeserver", () => {
  it("goes out as it is meant, and its answer is read", async () => {
    let seen: unknown;
    answer = (response, { method, url, headers }) => {
      seen = { method, url, token: headers.authorization?.startsWith("Bearer ") };
      json({ next_batch: "s1" })(response);
    };
    await client.sync(as.userId, "s 0&1", { room: {} });
    expect(seen).toEqual({
      method: "GET",
      url: "/_matrix/client/v3/sync?since=s%200%261&filter=%7B%22room%22%3A%7B%7D%7D&timeout=0&set_presence=offline&user_id=%40agent_a%3Atest.org",
      token: true,
    });
  });

  it("that is refused says what the homeserver says", async () => {
    answer = (response) =>
      void response.writeHead(429, { "retry-after": "7" }).end('{"errcode":"M_LIMIT_EXCEEDED","error":"slow"}');
    expect(await errorOf(send())).toMatchObject({ status: 429, errcode: "M_LIMIT_EXCEEDED", retryAfterMs: 7_000 });
  });

  it("that a gateway refuses has its status", async () => {
    answer = (response) => void response.writeHead(502, { "retry-after": "3" }).end("<html>");
    expect(await errorOf(send())).toMatchObject({ status: 502, errcode: "", isAway: true, retryAfterMs: 3_000 });
  });

  it("that is sent elsewhere does not go there", async () => {
    let times = 0;
    answer = (response) => {
      times += 1;
      response.writeHead(301, { location: "/elsewhere" }).end();
    };
    expect(await errorOf(send())).toMatchObject({ status: 301, isFinal: false });
    expect(times).toBe(1);
  });

  it("that nobody answers says why", async () => {
    answer = (response) => void response.socket?.resetAndDestroy();
    const error = await errorOf(send());
    expect(error).toMatchObject({ status: 0, isAway: true });
    expect(String(error)).not.toMatch(/fetch failed|terminated/);
  });
});

describe("a 200 without what it must hold", () => {
  const wrong = [{}, [], { event_id: 5 }, { event_id: "" }, { event_id: "event" }, { room_id: "" }, { content_uri: 1 }];
  it.each<[string, () => Promise<unknown>]>([
    ["to an event", send],
    ["to a state event", () => client.sendState(as, room, { type: "t", stateKey: "", content: {} })],
    ["to a new room", () => client.createRoom(as, {})],
    ["to a join", () => client.join(as, room)],
    ["to an upload", () => client.upload(as, Buffer.from("x"), "text/plain", "x")],
    ["to a page of history", () => client.messagesBefore(as, room, { limit: 10 })],
  ])("%s is an error, and tried again", async (_, ask) => {
    for (const body of wrong) {
      answer = json(body);
      const error = await errorOf(ask());
      expect(error, JSON.stringify(body)).toBeInstanceOf(HomeserverError);
      expect(error).toMatchObject({ isFinal: false });
    }
  });

  it("to the state of a room is an error, where it is no list", async () => {
    answer = json({});
    expect(await errorOf(client.roomState(as, room))).toMatchObject({ name: "HomeserverError", isFinal: false });
  });

  it("is told from one with it", async () => {
    answer = json({ event_id: "$event", room_id: "!made", content_uri: "mxc://a/b", chunk: [] });
    expect(await send()).toBe("$event");
    expect(await client.createRoom(as, {})).toBe("!made");
    expect(await client.upload(as, Buffer.from("x"), "text/plain", "x")).toBe("mxc://a/b");
    expect(await client.messagesBefore(as, room, { limit: 1 })).toEqual({ events: [], next: undefined });
    await client.join(as, room);
  });
});
