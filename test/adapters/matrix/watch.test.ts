import { once } from "node:events";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { HomeserverWatch } from "../../../src/adapters/matrix/watch.ts";
import { fixedClock } from "../../support/fixed-clock.ts";

/** Stands for a proxy before the homeserver: connections to it outlive the homeserver. */
const proxy = createServer((socket) => socket.on("error", () => {}).resume());
const ears = { onGone: vi.fn(), onBack: vi.fn() };
const client = { isAlive: vi.fn(async () => true), onUnreachable: () => {} };
let clock: ReturnType<typeof fixedClock>;
let watch: HomeserverWatch;

beforeEach(async () => {
  vi.clearAllMocks();
  client.isAlive.mockResolvedValue(true);
  clock = fixedClock({ instantBelow: 0 });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  const port = typeof address === "object" ? address?.port : undefined;
  watch = new HomeserverWatch(client, `http://127.0.0.1:${port}`, clock, ears);
  const connected = once(proxy, "connection");
  watch.start();
  await connected;
});

afterEach(async () => {
  watch.stop();
  proxy.close();
  await once(proxy, "close");
});

const connections = promisify(proxy.getConnections.bind(proxy));

/** The watch sleeps until it asks once more. */
const asks = async (times: number) => {
  for (let asked = 0; asked < times; asked++) {
    await vi.waitFor(() => expect(clock.sleeps).toHaveLength(asked + 1));
    clock.advance(clock.sleeps[asked] ?? 0);
  }
  await vi.waitFor(() => expect(client.isAlive).toHaveBeenCalledTimes(times));
};

it("a homeserver that answers each question is there", async () => {
  await asks(5);
  expect(ears.onGone).not.toHaveBeenCalled();
});

it("a homeserver behind a proxy that does not answer once was away", async () => {
  client.isAlive.mockResolvedValueOnce(false);
  await asks(1);
  await vi.waitFor(() => expect(ears.onGone).toHaveBeenCalledOnce());
  clock.advance(500);
  await vi.waitFor(() => expect(ears.onBack).toHaveBeenCalledOnce());
  await vi.waitFor(async () => expect(await connections()).toBe(1));
});

it("to a process that was frozen the homeserver was away", async () => {
  await asks(1);
  await vi.waitFor(() => expect(clock.sleeps).toHaveLength(2));
  clock.advance(20_000);
  await vi.waitFor(() => expect(ears.onGone).toHaveBeenCalledOnce());
  clock.advance(500);
  await vi.waitFor(() => expect(ears.onBack).toHaveBeenCalledOnce());
  await vi.waitFor(async () => expect(await connections()).toBe(1));
});
