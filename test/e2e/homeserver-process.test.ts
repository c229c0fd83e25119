import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findRunning } from "../../src/edges/demo/homeserver.ts";
import { cacheDir } from "../support/cache-dir.ts";
import { freePort } from "../support/free-port.ts";
import { eventually } from "../support/poll.ts";

let dir: string;
let url: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-homeserver-"));
});
afterEach(async () => {
  await (await findRunning(dir))?.kill();
  await rm(dir, { recursive: true });
});

/** Starts a homeserver from a process of its own, and kills that process. */
const startAndDie = async (isDetached: boolean): Promise<void> => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}/_matrix/client/versions`;
  const options = { dir, port, serverName: "clevernet.test", registrations: [], cacheDir, isDetached };
  const module = join(import.meta.dirname, "../../src/edges/demo/homeserver.ts");
  const script = `const { startHomeserver } = await import(${JSON.stringify(module)});
    await startHomeserver({ ...${JSON.stringify(options)}, onProgress() {} });
    process.kill(process.pid, "SIGKILL");`;
  const { signal, stderr } = await execa({ node: true, reject: false })`--input-type=module --eval ${script}`;
  expect({ signal, stderr }).toEqual({ signal: "SIGKILL", stderr: "" });
};

const answers = (): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  );

it("ends with the process that started it, however that ends", async () => {
  await startAndDie(false);
  await eventually(async () => !(await answers()), { what: "Synapse to be gone" });
});

it("outlives that process when detached, and is found again until it is stopped", async () => {
  await startAndDie(true);
  const found = await findRunning(dir);
  expect(await answers()).toBe(true);
  await found?.stop();
  expect(await answers()).toBe(false);
  expect(await findRunning(dir)).toBeUndefined();
});
