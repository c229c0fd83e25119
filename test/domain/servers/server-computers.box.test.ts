import { afterAll, beforeAll, expect, inject, it, vi } from "vitest";
import { ServerLink } from "../../../src/adapters/mcp/link.ts";
import { sandboxSection, sandboxSettings } from "../../../src/app/config/sandbox.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { secret } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { ServerComputers } from "../../../src/domain/servers/server-computers.ts";
import { describeSandbox } from "../../support/sandbox.ts";
import { localHost } from "../../support/sandbox-host.ts";

// On a busy machine a container takes its time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** A server that does what its tools are called. */
const script = `
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\\n");
const text = (id, t) => send({ id, result: { content: [{ type: "text", text: String(t) }] } });
const tool = (name) => ({ name, description: name, inputSchema: { type: "object" } });
require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: "x", version: "1" } } });
  if (method === "tools/list") return send({ id, result: { tools: ["env", "die", "garbage", "storm", "network", "keep"].map(tool) } });
  if (method !== "tools/call") return id !== undefined && send({ id, error: { code: -32601, message: "no" } });
  if (params.name === "die") process.exit(3);
  if (params.name === "env") return text(id, [process.env.KEY, process.getuid(), Object.keys(process.env).some((name) => /proxy/i.test(name))].join(" "));
  if (params.name === "garbage") process.stdout.write("no JSON\\n\\n{}\\n[1]\\n");
  if (params.name === "storm") for (let n = 0; n < 2000; n++) send({ method: "notifications/tools/list_changed" });
  if (params.name === "network") return text(id, await fetch("http://1.1.1.1/").then(() => "reached", () => "nothing"));
  if (params.name === "keep") { const fs = require("fs"); fs.appendFileSync("/workspace/kept", "x"); return text(id, fs.readFileSync("/workspace/kept")); }
  text(id, params.name + " is done");
});`;

describeSandbox("a server that is a program", () => {
  const owner = secret(8);
  const host = localHost();
  const sandbox = inject("sandbox");
  let computers: ServerComputers;
  let link: ServerLink;
  let changes = 0;
  beforeAll(() => {
    const image = "tools" in sandbox ? sandbox.tools : "";
    computers = new ServerComputers({
      host,
      settings: sandboxSettings(sandboxSection.parse({ image })),
      pass: async () => {},
      owner: async () => owner,
      clock: systemClock,
      log: silentLog,
    });
    const program = { name: "files", command: ["node", "-e", script], env: { KEY: "a key" }, network: [] } as const;
    link = new ServerLink({
      door: { start: () => computers.start(program) },
      onChanged: () => {
        changes += 1;
      },
    });
  });
  afterAll(async () => {
    await link.close();
    await computers.keep([]);
  });

  const call = async (tool: string): Promise<string> => {
    const asked = { tool, input: {}, timeoutMs: 60_000, signal: AbortSignal.any([]) };
    return String((await link.call(asked)).parts[0]?.text);
  };
  const ours = () => host.find({ name: "clevernet.servers", value: owner });

  it("runs in a sandbox of its own, with its environment, and without a network", async () => {
    expect(await link.list()).toHaveLength(6);
    expect(await call("env")).toBe("a key 1000 false");
    expect(await call("network")).toBe("nothing");
    expect(await ours()).toMatchObject([{ isRunning: true }]);
  });

  it("may write what is no message, and two thousand that are one", async () => {
    expect(await call("garbage")).toBe("garbage is done");
    expect(await call("storm")).toBe("storm is done");
    await expect.poll(() => changes).toBe(1);
  });

  it("when it dies in a call, nobody knows what was done; the next call starts it again, with its files", async () => {
    expect(await call("keep")).toBe("x");
    await expect(call("die")).rejects.toMatchObject({ message: "the connection was closed", mayBeDone: true });
    expect(link.isOpen).toBe(false);
    expect(await call("keep")).toBe("xx");
  });

  it("ends with its link, and is removed where it is no server any more", async () => {
    await link.close();
    await expect.poll(async () => (await ours()).map(({ isRunning }) => isRunning)).toEqual([false]);
    await computers.keep(["files"]);
    expect(await ours()).toHaveLength(1);
    await computers.keep([]);
    expect(await ours()).toEqual([]);
  });

  it("says why it cannot be started", async () => {
    const start = () => computers.start({ name: "none", command: ["/no/such/program"], env: {}, network: [] });
    const none = new ServerLink({ door: { start }, onChanged: () => {} });
    await expect(none.list()).rejects.toMatchObject({ message: "the connection was closed", mayBeDone: false });
    await none.close();
    await expect.poll(async () => (await ours()).filter(({ isRunning }) => isRunning)).toEqual([]);
  });
});
