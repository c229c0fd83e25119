import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/lib/log.ts";
import { type ApplicationService, createApplicationService } from "../../src/matrix/appservice.ts";
import { createRegistration } from "../../src/matrix/registration.ts";
import { freePort } from "../support/free-port.ts";

const host = "127.0.0.1";
const serverName = "example.org";
/** It keeps its connection for the next transaction, as Synapse does. */
const homeserver = new Agent({ keepAlive: true });
let service: ApplicationService;
let port: number;
let token: string;
let taken: PromiseWithResolvers<void>;
let stored: PromiseWithResolvers<void>;

beforeEach(async () => {
  port = await freePort();
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
    onMisfit: async () => {},
    userExists: async () => false,
    mount: () => {},
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
