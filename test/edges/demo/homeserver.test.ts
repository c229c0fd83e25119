import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { startHomeserver } from "../../../src/edges/demo/homeserver.ts";
import { freePort } from "../../support/free-port.ts";

/** A machine that has only the programs which a test gives it: they are shell scripts. */
describe("a homeserver that cannot be started", () => {
  let dir: string;
  let bin: string;
  const said: string[] = [];
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "clevernet-start-"));
    bin = join(dir, "bin");
    await mkdir(bin);
    vi.stubEnv("PATH", bin);
    said.length = 0;
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(dir, { recursive: true });
  });

  const install = async (name: string, script: string): Promise<void> => {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  };

  const refusal = async (port?: number): Promise<string> => {
    const starting = startHomeserver({
      dir: join(dir, "state"),
      port: port ?? (await freePort()),
      serverName: "example.org",
      registrations: [],
      cacheDir: join(dir, "cache"),
      onProgress: (text) => said.push(text),
    });
    const error: unknown = await starting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    return String(error);
  };

  it("names what is not installed, way by way, and what to install", async () => {
    const message = await refusal();
    expect(message).toContain("Python: python3 is not installed");
    expect(message).toContain("Podman: podman is not installed");
    expect(message).toContain("Docker: docker is not installed");
    expect(message).toContain("Install one of these: Python 3.10 or newer with venv");
  });

  it("says why a way is not gone before it tries the next", async () => {
    await refusal();
    expect(said[0]).toBe("not with Python: python3 is not installed");
    expect(said[1]).toBe("not with Podman: podman is not installed");
  });

  it("names the version of a Python that is too old", async () => {
    await install("python3", "echo 3.9");
    expect(await refusal()).toContain("python3 is 3.9, and 3.10 is needed");
  });

  it("names the package of a Python without venv", async () => {
    await install("python3", 'case "$*" in *version_info*) echo 3.12;; *) exit 1;; esac');
    expect(await refusal()).toContain("apt install python3-venv");
  });

  it("repeats what an engine says that does not run", async () => {
    await install("docker", 'echo "Cannot connect to the Docker daemon." >&2; exit 1');
    expect(await refusal()).toContain("Docker: Cannot connect to the Docker daemon.");
  });

  it("repeats what the registry says when there is no image", async () => {
    await install("podman", 'test "$1" = version || { echo "Error: registry: no such host" >&2; exit 125; }');
    expect(await refusal()).toContain("cannot be fetched: Error: registry: no such host");
  });

  it("shows the end of the log of a Synapse that ends at once", async () => {
    await install("podman", 'test "$1" != run || { echo "no database here" >&2; exit 1; }');
    const message = await refusal();
    expect(message).toContain("Podman: Synapse ended as soon as it was started.");
    expect(message).toContain("no database here");
  });

  it("names the port that another program has", async () => {
    const port = await freePort();
    const other = createServer().listen(port, "127.0.0.1");
    const message = await refusal(port);
    other.close();
    expect(message).toContain(`Port ${port} is used by another program`);
  });
});
