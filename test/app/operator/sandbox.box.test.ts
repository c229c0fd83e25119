import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { sandboxSection, sandboxSettings } from "../../../src/app/config/sandbox.ts";
import type { CheckSetting } from "../../../src/app/operator/check-finding.ts";
import { checkSandbox } from "../../../src/app/operator/check-sandbox.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { describeSandbox } from "../../support/sandbox.ts";

const project = join(import.meta.dirname, "../../..");

describeSandbox("sandboxes for operators", () => {
  let dir: string;
  const image = () => {
    const sandbox = inject("sandbox");
    return "missing" in sandbox ? "" : sandbox.tools;
  };
  const write = async (sandbox: string) => {
    const file = join(dir, "config.yaml");
    const others = `homeserver: { url: http://127.0.0.1:8008, serverName: example.org }
bridge: { url: http://127.0.0.1:9009 }
database: { dir: data }
model: { name: some/model }`;
    await writeFile(file, `${others}\nsandbox: ${sandbox}\n`);
    return file;
  };
  const cli = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await execa(process.execPath, ["src/main.ts", "sandbox", ...args], {
      cwd: project,
      reject: false,
    });
    return { exitCode, stdout, stderr };
  };
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "clevernet-sandbox-"));
  });
  afterAll(() => rm(dir, { recursive: true }));

  it("clevernet check finds that all is well", async () => {
    const config = { sandbox: sandboxSettings(sandboxSection.parse({ image: image() })) };
    const found = [];
    for await (const finding of checkSandbox({ config, clock: systemClock } as CheckSetting)) found.push(finding);
    expect(found.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(found.map(({ says }) => says)).toContain("limits: 1024 MB of memory, 1 processors, 256 processes.");
  });

  it("clevernet sandbox build tells its steps; a second build does none of them again", async () => {
    const file = await write(`{ image: "${image()}-again" }`);
    const { exitCode, stdout } = await cli("build", "--tools", "--config", file);
    const again = `${image()}-again`;
    // Without the second name it would take all names of the image.
    await execa("podman", ["untag", again, again]);
    expect(exitCode).toBe(0);
    expect(stdout.split("\n").at(0)).toBe(
      `Making ${image()}-again: some minutes, once. Steps that are finished are kept.`,
    );
    expect(stdout).toMatch(/^part 1\/3, step 1 of \d+: FROM /m);
    expect(stdout.split("\n").at(-1)).toBe(
      `${image()}-again is ready. To see whether sandboxes work: npm run clevernet -- check`,
    );
  });

  it("says why it cannot be built, and what to do", async () => {
    const file = await write(`{ image: "${image()}-again" }`);
    expect(await cli("build", "--config", file, "--base", "localhost/no-such-base")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^clevernet: the image cannot be made:[\s\S]*no-such-base[\s\S]*→ Mend what this says, and start it again: finished steps are kept\.$/,
      ),
    });
    expect((await cli("build", "--config", file, "--extra", "gcc; rm -rf /")).stderr).toBe(
      'clevernet: "gcc; rm -rf /" is no name of a package\n→ Write names of Debian packages.',
    );
    expect((await cli("build", "--config", file, "--ca", join(dir, "none.pem"))).stderr).toContain("There is no file");
    expect((await cli("build", "--config", await write("{ kind: off }"))).stderr).toContain("sandbox.kind is off");
    expect((await cli("build", "--config", await write("{ podman: /no/such/podman }"))).stderr).toContain(
      "Install Podman 4.3 or newer",
    );
  });
});
