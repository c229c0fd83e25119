import { afterAll, beforeAll, expect, it } from "vitest";
import type { AgentName, RoomId } from "../../../src/base/lib/ids.ts";
import { Browsers } from "../../../src/domain/sandboxes/browsers.ts";
import { HostPorts } from "../../../src/domain/sandboxes/host-ports.ts";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const conversation = { agent: "helper" as AgentName, roomId: "!here" as RoomId };
const other = { agent: "helper" as AgentName, roomId: "!there" as RoomId };

describeSandbox("ports of the machine that lead into a sandbox", () => {
  const box = sharedBox();
  const use = async () => ({ runner: box().runner, boot: await box().runner.boot() });
  const ports = new HostPorts({ use });
  const get = async (port: number, path = "/") => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
    return await answer.text();
  };
  const serve = async () => {
    const script = `require("http").createServer((q, a) => q.url === "/large" ? a.end(Buffer.alloc(5e6, 97)) : q.pipe(a)).listen(4000, "127.0.0.1")`;
    await box().runner.start({
      id: `web-${box().boot}`,
      boot: box().boot,
      argv: ["node", "-e", script],
      seconds: null,
    });
    await eventually(async () => (await box().sh("curl -s localhost:4000")).code === 0, { what: "the server" });
  };
  beforeAll(serve);
  afterAll(() => ports.close());

  it("lead to its server, the same one for the same port", async () => {
    const port = await ports.open(conversation, 4_000);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "hello" });
    expect(await answer.text()).toBe("hello");
    expect((await get(port, "/large")).length).toBe(5_000_000);
    expect(await ports.open(conversation, 4_000)).toBe(port);
    const many = await Promise.all(Array.from({ length: 20 }, () => get(port, "/large")));
    expect(many.every((text) => text.length === 5_000_000)).toBe(true);
  });

  it("are refused where nothing listens", async () => {
    await expect(ports.open(conversation, 4_001)).rejects.toThrow("Nothing listens on port 4001 of the computer");
  });

  it("end with the run of the sandbox", async () => {
    const port = await ports.open(conversation, 4_000);
    await box().host.stop(box().id);
    await box().host.start(box().id);
    await eventually(
      () =>
        get(port).then(
          () => false,
          () => true,
        ),
      { what: "the port's end" },
    );
    await eventually(
      () =>
        get(port).then(
          () => false,
          (error: Error) => /ECONNREFUSED/.test(String(error.cause)),
        ),
      { what: "a closed port" },
    );
    box().boot = await box().runner.boot();
    await serve();
    const next = await ports.open(conversation, 4_000);
    expect(await get(next)).toBe("");
  });
});

describeSandbox("the browsers of all sandboxes", () => {
  const box = sharedBox({}, true);
  const use = async () => ({ runner: box().runner, boot: box().boot });
  const order = {
    url: "http://localhost:9000/page",
    width: 200,
    height: 100,
    isFullPage: false,
    waitMs: 300,
    timeoutMs: 20_000,
  };

  it("take as many pictures at a time as there are places, each in its turn", async () => {
    const script = `let now = 0, most = 0;
require("http").createServer((q, a) => {
  if (q.url === "/most") return a.end(String(most));
  most = Math.max(most, ++now);
  setTimeout(() => a.end("x", () => now--), 500);
}).listen(9000)`;
    await box().runner.start({ id: "web", boot: box().boot, argv: ["node", "-e", script], seconds: null });
    await eventually(async () => (await box().sh("curl -s localhost:9000/most")).stdout === "0", {
      what: "the server",
    });
    const browsers = new Browsers({ use }, 1);
    const signal = new AbortController().signal;
    const shoot = (where: typeof conversation, told = signal) => browsers.shoot(where, order, told);
    const stop = new AbortController();
    const all = [shoot(conversation), shoot(other), shoot(conversation)];
    const given = shoot(other, stop.signal).then(
      () => "taken",
      (error: unknown) => String(error),
    );
    stop.abort(new Error("stopped"));
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await given).toBe("Error: stopped");
    expect((await box().sh("curl -s localhost:9000/most")).stdout).toBe("1");
    expect((await shoot(other)).status).toBe(200);
    await browsers.close();
  });
});
