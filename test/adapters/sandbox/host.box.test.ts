import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { HostFinding, SandboxHost, SandboxSpec } from "../../../src/adapters/sandbox/host.ts";
import { PodmanHost, seccompProfile } from "../../../src/adapters/sandbox/podman-host.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { eventually } from "../../support/poll.ts";
import { Box, describeSandbox, testSpec } from "../../support/sandbox.ts";
import { localHost } from "../../support/sandbox-host.ts";

const podman = async (...args: string[]) => (await execa("podman", args, { reject: false })).stdout;

async function all(findings: AsyncIterable<HostFinding>): Promise<HostFinding[]> {
  const found: HostFinding[] = [];
  for await (const finding of findings) found.push(finding);
  return found;
}

/** Every host keeps this contract. */
function contract(open: () => SandboxHost): void {
  const made: string[] = [];
  const create = async (spec: SandboxSpec) => {
    made.push(spec.name);
    return await open().create(spec);
  };
  const ask = async (id: string, command: string) => {
    const box = await Box.attach(open(), id);
    try {
      return (await box.sh(command)).stdout;
    } finally {
      await box.runner.close();
    }
  };
  const stateOf = async (label: string) =>
    (await open().find({ name: "clevernet.group", value: label })).map(({ id, isRunning }) => ({ id, isRunning }));
  afterEach(async () => {
    for (const id of made.splice(0)) await open().remove(id);
  });

  it("makes, finds, starts, stops and removes, all of it more than once", async () => {
    const spec = testSpec({}, "life");
    const id = await create(spec);
    expect(await create(spec)).toBe(id);
    expect(await stateOf("life")).toEqual([{ id, isRunning: false }]);
    for (const _ of [1, 2]) await open().start(id);
    expect(await ask(id, "echo kept >file; id -u")).toBe("1000\n");
    expect(await stateOf("life")).toEqual([{ id, isRunning: true }]);
    for (const _ of [1, 2]) await open().stop(id);
    expect(await stateOf("life")).toEqual([{ id, isRunning: false }]);
    await open().start(id);
    expect(await ask(id, "cat file; mkdir x; head -c 5m /dev/zero >x/y; chmod 0 x")).toBe("kept\n");
    const { bytes = 0, files = 0 } = (await open().measure(id)) ?? {};
    expect(bytes).toBeGreaterThanOrEqual(5 << 20);
    expect(bytes).toBeLessThan(6 << 20);
    expect(files).toBeGreaterThanOrEqual(4);
    expect(await open().measure("clevernet-test-nobody")).toBeUndefined();
    for (const _ of [1, 2]) await open().remove(id);
    expect(await stateOf("life")).toEqual([]);
    expect(await open().find({ name: "clevernet.group", value: "nobody" })).toEqual([]);
  });

  it("gives a sandbox new limits and keeps its files; removal takes them", async () => {
    const spec = testSpec();
    const id = await create(spec);
    await open().start(id);
    await ask(id, "echo kept >file");
    const changed = { ...spec, limits: { ...spec.limits, processes: 123, fileMegabytes: 5 } };
    expect(await open().create(changed)).toBe(id);
    await open().start(id);
    expect(
      await ask(id, "cat file; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null; ulimit -f"),
    ).toBe("kept\n123\n5120\n");
    await open().remove(id);
    await create(spec);
    await open().start(id);
    expect(await ask(id, "ls -A")).toBe(".home\n");
  });

  it("has for each sandbox a workspace of its own", async () => {
    const [one, other] = [testSpec(), testSpec()];
    for (const spec of [one, other]) {
      await create(spec);
      await open().start(spec.name);
    }
    await ask(one.name, "echo mine >file");
    expect(await ask(other.name, "ls")).toBe("");
  });

  it("another boot after each start", async () => {
    const spec = testSpec();
    const boots = new Set<string>();
    for (const _ of [1, 2]) {
      await create(spec);
      await open().start(spec.name);
      const box = await Box.attach(open(), spec.name);
      boots.add(box.boot);
      await box.runner.close();
      await open().stop(spec.name);
    }
    expect(boots.size).toBe(2);
  });

  it("says what is wrong with an image or a sandbox that is not there, and its stream ends", async () => {
    await expect(create({ ...testSpec(), image: "localhost/no-such-image" })).rejects.toMatchObject({
      name: "HostError",
      message: expect.stringContaining("there is no image localhost/no-such-image"),
      remedy: "Make it: npm run clevernet -- sandbox build",
    });
    await expect(open().start("clevernet-test-nobody")).rejects.toThrow(
      /the sandbox clevernet-test-nobody cannot be started: .*no such container/,
    );
    const stream = await open().connect("clevernet-test-nobody");
    await expect(text(stream)).rejects.toThrow(/no such container/);
  });

  it("never goes on without the workspace that was asked for", async () => {
    // ext4 and overlay cannot limit a volume; where the file system can, it is limited.
    const spec = testSpec({ diskMegabytes: 50 });
    const outcome = await create(spec).catch((error: unknown) => error);
    if (outcome === spec.name) return;
    expect(outcome).toMatchObject({
      name: "HostError",
      message: expect.stringMatching(new RegExp(`^the workspace of ${spec.name} cannot be made: `)),
      remedy: expect.stringContaining("sandbox.limits.diskMegabytes"),
    });
    expect(await podman("ps", "--all", "--quiet", "--filter", `name=${spec.name}`)).toBe("");
    expect(await podman("volume", "ls", "--quiet", "--filter", `name=${spec.name}`)).toBe("");
  });

  it("finds nothing wrong with itself, looks at a sandbox from inside, and leaves nothing", async () => {
    const spec = testSpec();
    const findings = await all(open().check(spec));
    expect(findings.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(findings.map(({ point }) => point)).toEqual([
      ...["podman", "cgroups", "image"],
      ...["privileges", "system calls", "limits", "network", "programs"],
    ]);
    expect(await podman("ps", "--all", "--quiet", "--filter", `name=${spec.name}`)).toBe("");
    expect(await podman("volume", "ls", "--quiet", "--filter", `name=${spec.name}`)).toBe("");
  });
}

describeSandbox("hosts", () => {
  describe("Podman on this machine", () => contract(localHost));

  describe("Podman by the name of a connection", () => {
    let dir: string;
    const serve = (url: string) => execa("podman", ["system", "service", "--time=0", url], { reject: false });
    let service: ReturnType<typeof serve>;
    const before = process.env.CONTAINERS_CONF;
    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), "clevernet-podman-"));
      const url = `unix://${dir}/podman.sock`;
      service = serve(url);
      const machine = await readFile("/etc/containers/containers.conf", "utf8").catch(() => "");
      const connection = `[engine.service_destinations.far]\nuri = "${url}"\n`;
      await writeFile(join(dir, "containers.conf"), `${machine}\n${connection}`);
      process.env.CONTAINERS_CONF = join(dir, "containers.conf");
      await eventually(async () => (await podman("--remote", "--connection", "far", "version")) !== "", {
        what: "the service",
      });
    });
    afterAll(async () => {
      if (before === undefined) delete process.env.CONTAINERS_CONF;
      else process.env.CONTAINERS_CONF = before;
      service.kill();
      await service;
      await rm(dir, { recursive: true });
    });

    const far = () =>
      new PodmanHost({ podman: "podman", connection: "far", seccomp: seccompProfile, clock: systemClock });
    contract(far);

    it("says how to reach it when its service has ended, while its sandboxes live on", async () => {
      const box = await Box.start(testSpec(), far());
      try {
        service.kill("SIGKILL");
        await service;
        await expect(far().find({ name: "clevernet.group", value: "x" })).rejects.toMatchObject({
          remedy: expect.stringContaining("podman machine start"),
        });
        expect(await box.isRunning()).toBe(true);
      } finally {
        await box.runner.close();
        await localHost().remove(box.id);
      }
    });
  });
});

describeSandbox("the look at a host", () => {
  const findings = (host: SandboxHost, spec = testSpec()): Promise<HostFinding[]> => all(host.check(spec));
  const failures = async (...given: Parameters<typeof findings>) =>
    (await findings(...given)).filter(({ state }) => state !== "ok");

  it("says what to install where there is no Podman", async () =>
    expect(await findings(new PodmanHost({ podman: "/no/such/podman", clock: systemClock }))).toEqual([
      {
        point: "podman",
        state: "missing",
        says: "it does not answer: there is no program /no/such/podman.",
        remedy: expect.stringContaining("Install Podman 4.3 or newer"),
      },
    ]));

  it("says which image is to be made", async () =>
    expect(await failures(localHost(), { ...testSpec(), image: "localhost/no-such-image" })).toEqual([
      {
        point: "image",
        state: "missing",
        says: "there is no localhost/no-such-image.",
        remedy: expect.stringContaining("sandbox build"),
      },
    ]));

  it("says that the connection is not known", async () =>
    expect(
      await failures(new PodmanHost({ podman: "podman", connection: "no-such", clock: systemClock })),
    ).toMatchObject([{ point: "podman", state: "missing" }]));

  it("calls a sandbox unsafe whose system calls are not filtered as ours", async () => {
    const dir = await mkdtemp(join(tmpdir(), "clevernet-seccomp-"));
    const open = join(dir, "seccomp.json");
    await writeFile(open, JSON.stringify({ defaultAction: "SCMP_ACT_ALLOW", syscalls: [] }));
    const found = await failures(new PodmanHost({ podman: "podman", seccomp: open, clock: systemClock }));
    await rm(dir, { recursive: true });
    expect(found).toEqual([
      {
        point: "system calls",
        state: "unsafe",
        says: expect.stringContaining("commands may make user namespaces"),
        remedy: expect.stringContaining("seccomp.json is not in force"),
      },
    ]);
  });

  it("says that the profile cannot be found", async () =>
    expect(
      await failures(new PodmanHost({ podman: "podman", seccomp: "/no/such.json", clock: systemClock })),
    ).toMatchObject([{ point: "inside", state: "missing", says: expect.stringContaining("/no/such.json") }]));
});
