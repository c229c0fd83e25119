import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { specOf } from "../../src/adapters/sandbox/open-host.ts";
import { createArguments } from "../../src/adapters/sandbox/podman-arguments.ts";
import { PodmanHost, seccompProfile } from "../../src/adapters/sandbox/podman-host.ts";
import { clear } from "../../src/adapters/sandbox/run-program.ts";
import { Runner } from "../../src/adapters/sandbox/runner.ts";
import { Workspace } from "../../src/adapters/sandbox/workspace.ts";
import { sandboxSection, sandboxSettings } from "../../src/app/config/sandbox.ts";
import { wireSandboxes } from "../../src/app/start/wire-sandboxes.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { type Conversation, secret } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { Outbox } from "../../src/domain/tables/outbox.ts";
import { addAgent, newRoom } from "../support/rows.ts";
import { SandboxCpu } from "./sandbox-cpu.ts";
import { withSshd } from "./ssh-podman.ts";
import { median, ms, type Table } from "./table.ts";

const image = "localhost/clevernet-sandbox:browser";
const rounds = 30;
const slowRounds = 5;
const many = 20;
const megabyte = 1 << 20;
const signal = new AbortController().signal;

type Services = ReturnType<typeof wireSandboxes>["services"];
type Row = readonly [name: string, ours: string, other: string, ratio: string, goal: string];

/** Sandboxes of conversations, each figure beside what Podman takes for the same without us. */
export async function sandbox(): Promise<Table[]> {
  const hindrance = await execa("podman", ["image", "exists", image], { reject: false });
  if (hindrance.exitCode !== 0) {
    const note = `There is no ${image}: run the tests of the sandbox, or clevernet sandbox build.`;
    return [{ title: "Sandboxes", columns: [""], rows: [], note }];
  }
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-"));
  const database = await openDatabase({ dir: join(dir, "data") });
  const bench = new SandboxBench(database);
  try {
    await migrate(database);
    await bench.open();
    const rows = [
      ...(await bench.shortCommand()),
      ...(await bench.overSsh()),
      await bench.firstUse(),
      await bench.wake(),
      await bench.picture(),
      await bench.read(),
      await bench.reattach(),
      ...(await bench.idle()),
    ];
    const columns = ["", "ours", "beside", "ratio", "goal"];
    return [{ title: `Sandboxes on the embedded database, medians of ${rounds}, or ${slowRounds}`, columns, rows }];
  } finally {
    await bench.close();
    await database.close();
    await rm(dir, { recursive: true });
  }
}

class SandboxBench {
  readonly #database: Database;
  readonly #homeserver = secret(8);
  readonly #made: Services[] = [];
  #agent: Conversation["agent"] = "" as Conversation["agent"];
  #at: Conversation = { agent: this.#agent, roomId: newRoom() };
  #services: Services;

  constructor(database: Database) {
    this.#database = database;
    this.#services = this.#process();
  }

  async open(): Promise<void> {
    this.#agent = (await addAgent(this.#database)).name;
    this.#at = this.#room();
    await this.#services.sandboxes.pool.pass();
    await this.#run("true");
  }

  async close(): Promise<void> {
    const { sandboxes } = this.#services;
    const label = await sandboxes.names.label();
    for (const { sandboxes: one } of this.#made) await one.close();
    for (const { id } of await this.#host.find(label)) await this.#host.remove(id);
  }

  /** The whole of a short command: written down, sent, followed, its end stored. */
  async shortCommand(): Promise<Row[]> {
    const name = await this.#nameOf(this.#at);
    const ways = {
      ours: () => this.#run("echo hi"),
      exec: () => execa("podman", ["exec", "--user", "1000:1000", name, "bash", "-c", "echo hi"]),
      spawn: () => execa("bash", ["-c", "echo hi"]),
    };
    const cpu = await SandboxCpu.open();
    const wall = { ours: [] as number[], exec: [] as number[], spawn: [] as number[] };
    const used = { ours: 0, exec: 0, spawn: 0 };
    for (let round = 0; round < rounds; round++)
      for (const way of ["ours", "exec", "spawn"] as const) {
        const before = await cpu?.used();
        wall[way].push(await timed(ways[way]));
        used[way] += ((await cpu?.used()) ?? 0) - (before ?? 0);
      }
    await cpu?.close();
    return [
      compared("short command ÷ podman exec", wall.ours, wall.exec, "≤ 0.15"),
      compared("short command ÷ on the host", wall.ours, wall.spawn, "≤ 3"),
      ...(cpu ? [compared("its CPU ÷ podman exec", [used.ours / rounds], [used.exec / rounds], "≤ 0.15")] : []),
    ];
  }

  /** The runner over ssh, and over a call of Podman on this machine. */
  async overSsh(): Promise<Row[]> {
    const name = await this.#nameOf(this.#at);
    const measured = await withSshd(async (connection) => {
      const far = new PodmanHost({ podman: "podman", connection, seccomp: seccompProfile, clock: systemClock });
      const [ours, other]: [number[], number[]] = [[], []];
      const [near, remote] = await Promise.all([echo(this.#host, name), echo(far, name)]);
      try {
        for (let round = 0; round < rounds; round++) {
          other.push(await timed(near.run));
          ours.push(await timed(remote.run));
        }
      } finally {
        await Promise.all([near.close(), remote.close()]);
      }
      return compared("runner over ssh ÷ local", ours, other, "≤ 1.5");
    });
    return [measured ?? ["runner over ssh ÷ local", "no sshd", "", "", "≤ 1.5"]];
  }

  async firstUse(): Promise<Row> {
    const [ours, other]: [number[], number[]] = [[], []];
    const spec = specOf(this.#services.sandboxes.settings, "", {});
    for (let round = 0; round < slowRounds; round++) {
      const at = this.#room();
      ours.push(await timed(() => this.#run("echo hi", at)));
      await this.#services.sandboxes.reset(at);
      const name = `clevernet-bench-${secret(4)}`;
      other.push(
        await timed(async () => {
          await execa("podman", ["run", "--detach", ...createArguments({ ...spec, name }, seccompProfile)]);
          await execa("podman", ["exec", "--user", "1000:1000", name, "bash", "-c", "echo hi"]);
        }),
      );
      await this.#host.remove(name);
    }
    return compared("first use ÷ podman run + exec", ours, other, "≤ 1.2");
  }

  async wake(): Promise<Row> {
    const name = await this.#nameOf(this.#at);
    const [ours, other]: [number[], number[]] = [[], []];
    for (let round = 0; round < slowRounds; round++) {
      await this.#stop();
      other.push(await timed(() => execa("podman", ["start", name])));
      await this.#stop();
      ours.push(await timed(() => this.#services.sandboxes.use(this.#at)));
    }
    return compared("wake ÷ podman start", ours, other, "≤ 1.3");
  }

  async picture(): Promise<Row> {
    const script = "exec python3 -m http.server 8000 -d /usr/share/doc/bash";
    await this.#run(script, this.#at, true);
    await this.#run("until curl -s localhost:8000 >/dev/null; do sleep 0.1; done");
    const order = { url: "http://localhost:8000", width: 1_280, height: 720, isFullPage: false, waitMs: 0 };
    const shoot = () => this.#services.browsers.shoot(this.#at, { ...order, timeoutMs: 30_000 }, signal);
    const [kept, fresh]: [number[], number[]] = [[], []];
    for (let round = 0; round < slowRounds; round++) {
      await this.#services.browsers.close();
      fresh.push(await timed(shoot));
      for (let more = 0; more < 3; more++) kept.push(await timed(shoot));
    }
    await this.#services.browsers.close();
    return compared("kept browser's picture ÷ fresh", kept, fresh, "≤ 0.35");
  }

  async read(): Promise<Row> {
    await this.#run(`head -c ${megabyte} /dev/urandom >/workspace/file`);
    const workspace = new Workspace(await this.#services.sandboxes.use(this.#at));
    const name = await this.#nameOf(this.#at);
    const cat = ["exec", "--user", "1000:1000", name, "cat", "/workspace/file"];
    const [ours, other]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      ours.push(await timed(() => workspace.read("/file", { most: megabyte })));
      other.push(await timed(() => execa("podman", cat, { encoding: "buffer" })));
    }
    return compared("1 MB read ÷ podman exec cat", ours, other, "≤ 0.6");
  }

  /** Another process goes on with a command that runs: from when it has its database to the first byte. */
  async reattach(): Promise<Row> {
    const times: number[] = [];
    for (let round = 0; round < slowRounds; round++) {
      const key = `bench-${secret(6)}`;
      const first = this.#run("while sleep 0.01; do echo x; done", this.#at, false, key);
      first.catch(() => {});
      await this.#run("sleep 0.2");
      const other = this.#process();
      const stop = new AbortController();
      const seen = Promise.withResolvers<void>();
      times.push(
        await timed(async () => {
          const call = this.#callOf("while sleep 0.01; do echo x; done", this.#at, false, key);
          const running = other.sandboxCommands.run(call, { signal: stop.signal, onOutput: () => seen.resolve() });
          running.catch(() => {});
          await seen.promise;
        }),
      );
      stop.abort(new Error("the bench is over"));
      await first.catch(() => {});
      await other.sandboxes.close();
    }
    return ["reattach to the first byte", ms(median(times)), "", "", "≤ 200 ms"];
  }

  async idle(): Promise<Row[]> {
    const rooms = Array.from({ length: many }, () => this.#room());
    const bytes: number[] = [];
    for (const at of rooms) await this.#run("true", at);
    for (const at of rooms) bytes.push(await residentOf(await this.#nameOf(at)));
    for (const at of rooms) await this.#host.stop(await this.#nameOf(at));
    let left = 0;
    for (const at of rooms) left += (await pidsOf(await this.#nameOf(at))).length;
    return [
      [`idle, each of ${many}`, `${(median(bytes) / megabyte).toFixed(1)} MiB`, "", "", "≤ 10 MiB"],
      ["stopped: processes", String(left), "", "", "0"],
    ];
  }

  get #host(): PodmanHost {
    return new PodmanHost({ podman: "podman", clock: systemClock });
  }

  #room(): Conversation {
    return { agent: this.#agent, roomId: newRoom() };
  }

  /** Services as one process of the bridge has them. */
  #process(): Services {
    const section = sandboxSection.parse({ image, runningMost: many + 5, idleSeconds: 604_800 });
    const { services } = wireSandboxes({
      config: {
        homeserver: { url: this.#homeserver, serverName: "bench" },
        bridge: { instance: "bench" },
        sandbox: sandboxSettings(section),
        web: { allow: [] },
      },
      database: this.#database,
      directory: { findRecent: async () => undefined },
      outbox: new Outbox(this.#database),
      onOutbox: () => {},
      clock: systemClock,
      log: silentLog,
    });
    this.#made.push(services);
    return services;
  }

  #callOf(command: string, at: Conversation, isBackground: boolean, key: string) {
    return { ...at, key, command, requesters: [], sources: [], isBackground, seconds: isBackground ? null : 120 };
  }

  #run(command: string, at = this.#at, isBackground = false, key = `bench-${secret(6)}`) {
    return this.#services.sandboxCommands.run(this.#callOf(command, at, isBackground, key), { signal });
  }

  async #stop(): Promise<void> {
    await this.#host.stop(await this.#nameOf(this.#at));
    const isOver = async () => !(await this.#services.sandboxes.status(this.#at))?.isRunning;
    while (!(await isOver())) await systemClock.sleep(20);
  }

  #nameOf(at: Conversation): Promise<string> {
    return this.#services.sandboxes.names.of(at);
  }
}

/** Runs a short command by a host's stream, with nothing of ours around it but the runner's client. */
async function echo(host: PodmanHost, name: string) {
  const runner = new Runner({ connect: () => host.connect(name), clock: systemClock });
  const boot = await runner.boot();
  const run = async (): Promise<void> => {
    const id = `bench-${secret(6)}`;
    const output = runner.run({ id, boot, argv: ["bash", "-c", "echo hi"], seconds: 20 });
    for (let piece = await output.next(); !piece.done; ) piece = await output.next();
    void clear(runner, id);
  };
  await run();
  return { run, close: () => runner.close() };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

const compared = (name: string, ours: readonly number[], other: readonly number[], goal: string): Row => {
  const [mine, theirs] = [median(ours), median(other)];
  return [name, ms(mine), ms(theirs), (mine / theirs).toFixed(2), goal];
};

/** Processes of a sandbox on this machine, with the one that Podman keeps beside it. */
async function pidsOf(name: string): Promise<number[]> {
  const format = "{{.State.Pid}} {{.State.ConmonPid}}";
  const { stdout } = await execa("podman", ["inspect", "--format", format, name]);
  const [first = 0, conmon = 0] = stdout.split(" ").map(Number);
  if (first === 0) return [];
  const { stdout: inside } = await execa("podman", ["top", name, "hpid"]);
  return [conmon, ...inside.split("\n").slice(1).map(Number)];
}

/** Memory of a sandbox: pages that several share are counted in parts. */
async function residentOf(name: string): Promise<number> {
  let sum = 0;
  for (const pid of await pidsOf(name)) {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    sum += Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1_024;
  }
  return sum;
}
