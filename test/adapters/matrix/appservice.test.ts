import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ApplicationService, createApplicationService } from "../../../src/adapters/matrix/appservice.ts";
import { createRegistration } from "../../../src/adapters/matrix/registration.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { freePort } from "../../support/free-port.ts";

const host = "127.0.0.1";
const serverName = "example.org";
/** It keeps its connection for the next transaction, as Synapse does. */
const homeserver = new Agent({ keepAlive: true });
let service: ApplicationService;
let port: number;
let token: string;
let taken: PromiseWithResolvers<void>;
let stored: PromiseWithResolvers<void>;
let pinged: (string | undefined)[];

beforeEach(async () => {
  port = await freePort();
  pinged = [];
  [taken, stored] = [Promise.withResolvers(), Promise.withResolvers()];
  const registration = createRegistration({ serverName, url: `http://${host}:${port}` });
  token = registration.hs_token;
  service = await createApplicationService({
    homeserverUrl: `http://${host}:1`,
    serverName,
    registration: { ...registration },
    log: silentLog,
    onTransaction: () => {
      taken.resolve();
      return stored.promise;
    },
    onPing: async (id) => {
      pinged.push(id);
      if (id === "bad day") throw new Error("the database is away");
    },
    onMisfit: async () => {},
    userExists: async () => false,
    mount: (app) => void app.get("/open", (_request, response) => void response.send("ok")),
  });
  await service.listen(host, port);
});
afterEach(() => homeserver.destroy());

/** @returns the status of the answer */
const push = async (): Promise<number | undefined> => {
  const headers = { authorization: `Bearer ${token}` };
  const path = "/_matrix/app/v1/transactions/1";
  const sent = request({ host, port, path, method: "PUT", headers, agent: homeserver }).end('{"events":[]}');
  const [response] = await once(sent, "response");
  response.resume();
  return response.statusCode;
};

describe("an application service that is closed", () => {
  it("answers the transaction that is under way, and does not wait for a further one", async () => {
    const answer = push();
    await taken.promise;
    const closed = service.close();
    stored.resolve();
    expect(await answer).toBe(200);
    await closed;
  });

  it("does not wait for a connection on which nothing was said", async () => {
    const silent = connect(port, host);
    await once(silent, "connect");
    await service.close();
    silent.destroy();
  });
});

describe("a slow connection", () => {
  const path = "/_matrix/app/v1/transactions/1";
  /** Sends these lines, and then a byte again and again; gives what was answered once it is closed, and after how long. */
  const drip = async (lines: readonly string[], byte: string) => {
    const began = performance.now();
    const socket = connect(port, host).setEncoding("utf8");
    let answer = "";
    socket.on("data", (text) => {
      answer += text;
    });
    socket.on("error", () => {});
    socket.write(lines.map((line) => `${line}\r\n`).join(""));
    const dripping = setInterval(() => socket.writable && socket.write(byte), 50);
    await new Promise((resolve) => socket.on("close", resolve)).finally(() => clearInterval(dripping));
    return { answer, seconds: (performance.now() - began) / 1_000 };
  };
  const withoutEnd = ["Host: x", "Content-Length: 100000", ""];

  it("is closed soon where it has shown no token, also where it was answered before", async () => {
    const dripped = await Promise.all([
      drip([], ""),
      drip([`PUT ${path} HTTP/1.1`, "Host: x"], "X: y\r\n"),
      drip([`PUT ${path} HTTP/1.1`, ...withoutEnd], "x"),
      drip(["GET /open HTTP/1.1", ...withoutEnd], "x"),
      // Express answers what it does not know when all of it is there.
      drip(["PUT /nowhere HTTP/1.1", ...withoutEnd], "x"),
    ]);
    expect(dripped.map(({ answer }) => answer.slice(0, 12))).toEqual([
      "HTTP/1.1 408",
      "HTTP/1.1 408",
      "HTTP/1.1 403",
      "HTTP/1.1 200",
      "",
    ]);
    expect(Math.max(...dripped.map(({ seconds }) => seconds))).toBeLessThan(10);
  }, 20_000);

  it("with a token is heard to its end", async () => {
    stored.resolve();
    const headers = { authorization: `Bearer ${token}` };
    const sent = request({ host, port, path, method: "PUT", headers, agent: homeserver });
    for (const part of ['{"eve', "nts", '":[', "]}"]) {
      sent.write(part);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
    const [response] = await once(sent.end(), "response");
    response.resume();
    expect(response.statusCode).toBe(200);
  }, 20_000);

  it("that was answered early is kept where its body ends in time", async () => {
    const body = "x".repeat(2_000_000);
    const once403 = async () => {
      const sent = request({ host, port, path, method: "PUT", agent: homeserver }).end(body);
      const [response] = await once(sent, "response");
      response.resume();
      await once(response, "end");
      return response.statusCode;
    };
    expect([await once403(), await once403()]).toEqual([403, 403]);
    stored.resolve();
    expect(await push()).toBe(200);
  });
});

describe("a ping", () => {
  const ping = async (body: string, given = token): Promise<number> => {
    const headers = { authorization: `Bearer ${given}`, "content-type": "application/json" };
    const url = `http://${host}:${port}/_matrix/app/v1/ping`;
    return (await fetch(url, { method: "POST", headers, body })).status;
  };
  afterEach(() => service.close());

  it("is told with its id, where it has one", async () => {
    for (const body of [
      '{"transaction_id":"a"}',
      "{}",
      "",
      "[",
      "null",
      '{"transaction_id":5}',
      '{"transaction_id":"\\u0000"}',
    ])
      expect(await ping(body)).toBe(200);
    expect(pinged).toEqual(["a", undefined, undefined, undefined, undefined, undefined, "\uFFFD"]);
  });

  it("without our token is told to nobody", async () => {
    expect(await ping('{"transaction_id":"a"}', "another")).toBe(403);
    expect(pinged).toEqual([]);
  });

  it("that cannot be written down has found nobody", async () => {
    expect(await ping('{"transaction_id":"bad day"}')).toBe(500);
  });
});
