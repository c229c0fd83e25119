import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import sharp from "sharp";
import { expect, it } from "vitest";
import { buildImage } from "../../src/adapters/sandbox/build-image.ts";
import { isOtherBoot, type Runner } from "../../src/adapters/sandbox/runner.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { eventually } from "../support/poll.ts";
import { Box, describeSandbox, firstUid, testSpec } from "../support/sandbox.ts";
import { localHost } from "../support/sandbox-host.ts";

const script = "echo started >>/workspace/runs; for i in $(seq 60); do echo line $i; sleep 0.05; done; exit 7";
const lines = Array.from({ length: 60 }, (_, index) => `line ${index + 1}\n`).join("");

async function rest(runner: Runner, boot: string, id: string, from = 0) {
  const output = runner.follow({ id, boot, from });
  const pieces: Buffer[] = [];
  for (;;) {
    const { value, done } = await output.next();
    if (done) return { text: Buffer.concat(pieces).toString(), end: value };
    pieces.push(value.data);
  }
}

async function withBox(run: (box: Box) => Promise<void>): Promise<void> {
  const box = await Box.start(testSpec());
  try {
    await run(box);
  } finally {
    await box.remove();
  }
}

/** Process ids in the sandbox of what has these words in its command line, as the machine has them. */
async function pidsOf(box: Box, uid: number, words: string): Promise<number[]> {
  const found = await Promise.all(
    (await box.pidsOf(uid)).map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      return line.replaceAll("\0", " ").includes(words) ? [pid] : [];
    }),
  );
  return found.flat();
}

describeSandbox("faults of the sandbox", () => {
  it("a bridge that is killed with -9 in the middle of output finds all of it again, and nothing ran twice", () =>
    withBox(async (box) => {
      const child = execa(
        process.execPath,
        [join(import.meta.dirname, "../support/sandbox-client.ts"), box.id, box.boot, "call-1", script],
        {
          reject: false,
          buffer: false,
          stdin: "ignore",
        },
      );
      let came = 0;
      for await (const chunk of child.iterable({ binary: true })) {
        came += chunk.length;
        if (came > 50) break;
      }
      child.kill("SIGKILL");
      await child;
      // Whoever reads on has the offset from its own notes.
      const { text, end } = await rest(box.runner, box.boot, "call-1", came);
      expect([text, end]).toEqual([lines.slice(came), { code: 7, signal: null, reason: "ended", size: lines.length }]);
      // It does not know whether its request had come: it sends it again.
      const again = { id: "call-1", boot: box.boot, argv: ["bash", "-c", script] as const, seconds: 20 };
      expect(await box.runner.start(again)).toBe(false);
      expect((await box.sh("cat /workspace/runs")).stdout).toBe("started\n");
    }));

  it("the same with a command whose output is wanted whole: it waits for the next reader", () =>
    withBox(async (box) => {
      const child = execa(
        process.execPath,
        [
          join(import.meta.dirname, "../support/sandbox-client.ts"),
          box.id,
          box.boot,
          "call-1",
          "seq 1 900000",
          "whole",
        ],
        { reject: false, buffer: false, stdin: "ignore" },
      );
      const hash = createHash("sha256");
      let came = 0;
      for await (const chunk of child.iterable({ binary: true })) {
        came += chunk.length;
        hash.update(chunk);
        if (came > 1_000_000) break;
      }
      child.kill("SIGKILL");
      await child;
      const { text, end } = await rest(box.runner, box.boot, "call-1", came);
      expect(end).toMatchObject({ code: 0, size: came + text.length });
      expect(`${hash.update(text).digest("hex")}  -\n`).toBe((await box.sh("seq 1 900000 | sha256sum")).stdout);
    }));

  it("the call of Podman below the stream is killed, again and again", () =>
    withBox(async (box) => {
      const killing = (async () => {
        for (let turn = 0; turn < 5; turn++) {
          await systemClock.sleep(400);
          for (const pid of await pidsOf(box, firstUid, "socat")) process.kill(pid, "SIGKILL");
        }
      })();
      const { stdout, code } = await box.sh(script, { id: "call-1" });
      await killing;
      expect([stdout, code]).toEqual([lines, 7]);
      await eventually(async () => (await pidsOf(box, firstUid, "socat")).length === 1, { what: "one connection" });
    }));

  it("the runner is killed: the sandbox ends, and what ran in it is known to be lost, not run again", () =>
    withBox(async (box) => {
      const running = box.sh(script, { id: "call-1" }).catch((error: unknown) => error);
      await eventually(async () => (await box.commandPids()).length > 0, { what: "the command" });
      for (const pid of await pidsOf(box, firstUid, "/opt/clevernet/runner")) process.kill(pid, "SIGKILL");
      await eventually(async () => !(await box.isRunning()), { what: "the end of the sandbox" });
      await box.host.start(box.id);
      expect(await running).toSatisfy(isOtherBoot);
      const spec = { id: "call-1", boot: box.boot, argv: ["bash", "-c", script] as const, seconds: 20 };
      await expect(box.runner.start(spec)).rejects.toSatisfy(isOtherBoot);
      box.boot = await box.runner.boot();
      expect((await box.sh("cat /workspace/runs; ls /tmp | wc -l")).stdout).toBe("started\n0\n");
    }));

  it("a supervisor is killed: its command is reported as lost, nothing of it is left, the others go on", () =>
    withBox(async (box) => {
      const other = box.sh("sleep 4; echo mine");
      await eventually(async () => (await box.commandPids()).length === 2, {
        what: "the other command",
        within: 5_000,
      }).catch(() => {});
      const before = new Set(await pidsOf(box, firstUid, "/opt/clevernet/runner"));
      const lost = box.sh("setsid sleep 1000 & (trap '' TERM; sleep 1000) & sleep 1000", { id: "call-1" });
      await eventually(async () => (await pidsOf(box, firstUid + 1_000, "sleep 1000")).length >= 3, {
        what: "the command",
      });
      const [supervisor] = (await pidsOf(box, firstUid, "/opt/clevernet/runner")).filter((pid) => !before.has(pid));
      process.kill(supervisor ?? 0, "SIGKILL");
      expect(await lost).toMatchObject({ reason: "lost", code: null });
      await eventually(async () => (await pidsOf(box, firstUid + 1_000, "sleep 1000")).length === 0, {
        what: "the end of its processes",
      });
      expect((await other).stdout).toBe("mine\n");
      expect(await box.isWell()).toBe(true);
    }));

  it("the sandbox is stopped in the middle, and started again", () =>
    withBox(async (box) => {
      const running = box.sh(script, { id: "call-1" }).catch((error: unknown) => error);
      await eventually(async () => (await box.commandPids()).length > 0, { what: "the command" });
      await box.host.stop(box.id);
      await box.host.start(box.id);
      expect(await running).toSatisfy(isOtherBoot);
      box.boot = await box.runner.boot();
      expect((await box.sh("cat /workspace/runs")).stdout).toBe("started\n");
    }));

  it("the sandbox is paused for longer than a beat: reading goes on", () =>
    withBox(async (box) => {
      const running = box.sh(script, { id: "call-1" });
      await eventually(async () => (await box.commandPids()).length > 0, { what: "the command" });
      await execa("podman", ["pause", box.id]);
      await systemClock.sleep(15_000);
      await execa("podman", ["unpause", box.id]);
      expect((await running).stdout).toBe(lines);
    }));

  it("the image with a browser takes a screenshot of a server that the agent has started", async () => {
    const image = "localhost/clevernet-sandbox:browser";
    const authorities = "/etc/ssl/certs/ca-certificates.crt";
    const ca = existsSync(authorities) ? authorities : undefined;
    for await (const _ of buildImage({ podman: "podman", image, target: "browser", ca }));
    const box = await Box.start({ ...testSpec(), image });
    try {
      const express =
        "require('express')().get('/', (_, answer) => answer.send('<body style=\"background:#39ff14\">Hello Matrix')).listen(3000, () => console.log('up'))";
      await box.runner.start({ id: "server", boot: box.boot, argv: ["node", "-e", express], seconds: null });
      await eventually(async () => ((await box.runner.list())[0]?.size ?? 0) > 0, { what: "the server" });
      const shot = `import { chromium } from "playwright-core"
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM_PATH, chromiumSandbox: false, args: ["--disable-dev-shm-usage", "--disable-gpu", "--no-zygote"] })
const page = await browser.newPage({ viewport: { width: 320, height: 200 } })
await page.goto("http://localhost:3000/")
await page.screenshot({ path: "/workspace/shot.png" })
await browser.close()`;
      await box.sh(`cat >shot.mjs <<'SHOT'\n${shot}\nSHOT\nnode shot.mjs`, { seconds: 60 });
      const output = box.runner.run({
        id: "read",
        boot: box.boot,
        argv: ["cat", "/workspace/shot.png"],
        seconds: 10,
        isWhole: true,
      });
      const pieces: Buffer[] = [];
      for await (const { data } of output) pieces.push(data);
      const { data, info } = await sharp(Buffer.concat(pieces)).raw().toBuffer({ resolveWithObject: true });
      expect([info.width, info.height, [...data.subarray(-3)]]).toEqual([320, 200, [0x39, 0xff, 0x14]]);
    } finally {
      await box.remove();
    }
  });

  it("an image has the packages of Debian that were asked for", async () => {
    const order = {
      podman: "podman",
      image: "localhost/clevernet-sandbox:more",
      target: "tools",
      extra: ["tree"],
    } as const;
    for await (const _ of buildImage(order));
    const { stdout } = await execa("podman", ["run", "--rm", "--network=none", order.image, "tree", "--version"]);
    await execa("podman", ["rmi", order.image]);
    expect(stdout).toMatch(/^tree v\d/);
  });

  it("twenty at once each run what they are given, and go", async () => {
    const specs = Array.from({ length: 20 }, () => testSpec({}, "twenty"));
    const host = localHost();
    const queue = [...specs];
    const worker = async () => {
      for (let spec = queue.shift(); spec; spec = queue.shift()) {
        const box = await Box.start(spec);
        expect((await box.sh("echo hi")).stdout).toBe("hi\n");
        await box.runner.close();
      }
    };
    try {
      await Promise.all([worker(), worker(), worker(), worker()]);
      expect(
        (await host.find({ name: "clevernet.group", value: "twenty" })).filter(({ isRunning }) => isRunning),
      ).toHaveLength(20);
    } finally {
      for (const { name } of specs) await host.remove(name);
    }
    expect(await host.find({ name: "clevernet.group", value: "twenty" })).toEqual([]);
  });
});
