import { afterEach, beforeEach, expect, it } from "vitest";
import { listenForPing, newPingOfCheck, type PingListener } from "../../../src/adapters/matrix/probe.ts";
import { freePort } from "../../support/free-port.ts";

let port: number;
let listener: PingListener;
beforeEach(async () => {
  port = await freePort();
  listener = await listenForPing("127.0.0.1", port, "ours");
});
afterEach(() => listener.close());

const ping = async (body: string, token = "ours"): Promise<number> => {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`http://127.0.0.1:${port}/_matrix/app/v1/ping`, { method: "POST", headers, body })).status;
};
const withId = (id: string) => JSON.stringify({ transaction_id: id });
const mine = newPingOfCheck();

it("hears the ping that it was asked for, also where the homeserver leaves out the id", async () => {
  expect(listener.heard(mine)).toBe("nothing");
  expect(await ping(withId(mine))).toBe(200);
  expect(listener.heard(mine)).toBe("our token");
  const other = newPingOfCheck();
  expect(listener.heard(other)).toBe("nothing");
  await ping("{}");
  expect(listener.heard(other)).toBe("our token");
});

it("hears a ping with another token", async () => {
  expect(await ping(withId(mine), "theirs")).toBe(403);
  expect(listener.heard(mine)).toBe("another token");
});

it("tells its ping from that of another bridge", async () => {
  await ping(withId("of another"));
  expect([listener.heard(mine), listener.hasHeardOthers(mine)]).toEqual(["nothing", true]);
});

it("does not take another check for another bridge", async () => {
  await ping(withId(newPingOfCheck()));
  expect(listener.hasHeardOthers(mine)).toBe(false);
});
