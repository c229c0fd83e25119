import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const megabyte = 1024 * 1024;

describeSandbox("limits of a sandbox, seen from the machine", () => {
  const box = sharedBox({ memoryMegabytes: 768, processes: 96, cpus: 0.5, fileMegabytes: 20 });

  it("are those of the configuration", async () => {
    expect(Number(await box().figure("memory", "memory.max", "memory.limit_in_bytes"))).toBe(768 * megabyte);
    expect(Number(await box().figure("pids", "pids.max"))).toBe(96);
    const [quota, period] = (await box().figure("cpu", "cpu.max", "cpu.cfs_quota_us")).split(" ").map(Number);
    expect((quota ?? 0) / (period ?? Number(await box().figure("cpu", "cpu.cfs_period_us")))).toBe(0.5);
  });

  it("no swap beyond the memory", async () => {
    const swap = await box().figure("memory", "memory.swap.max", "memory.memsw.limit_in_bytes");
    expect([0, 768 * megabyte]).toContain(Number(swap));
  });

  it("memory: the command dies, the runner and its sandbox live", async () => {
    const { stdout } = await box().sh('python3 -c "b = bytearray(1 << 30)"; echo $?');
    expect(stdout).toBe("137\n");
    expect(await box().isWell()).toBe(true);
  });

  it("memory: what dies first is a command, whatever its size", async () => {
    expect((await box().sh("cat /proc/self/oom_score_adj")).stdout).toBe("500\n");
    const others = await box().pidsOf(1_000_000);
    const scores = await Promise.all(others.map((pid) => readFile(`/proc/${pid}/oom_score_adj`, "utf8")));
    expect(scores.every((score) => Number(score) < 500)).toBe(true);
  });

  it("memory: many that take it at once", async () => {
    await box().sh("for i in 1 2 3 4; do (head -c 400m /dev/zero | tail -c 399m >/dev/null) & done; wait", {
      seconds: 30,
    });
    expect(await box().isWell()).toBe(true);
    expect(Number(await box().figure("memory", "memory.peak", "memory.max_usage_in_bytes"))).toBeLessThanOrEqual(
      768 * megabyte,
    );
  });

  it("memory: /tmp and /dev/shm are full before it is", async () => {
    const { stdout } = await box().sh(
      "head -c 2G /dev/zero >/tmp/f; head -c 2G /dev/zero >/dev/shm/f; stat -c %s /tmp/f /dev/shm/f; ulimit -f",
    );
    // The limit of one file is below both.
    expect(stdout.split("\n").slice(0, 2).map(Number)).toEqual([20 * megabyte, 20 * megabyte]);
    const fill = await box().sh(
      "for i in $(seq 20); do cat /tmp/f >/tmp/f$i; cat /dev/shm/f >/dev/shm/f$i; done; df -m /tmp /dev/shm | awk 'NR > 1 { print $3 }'",
    );
    expect(fill.stderr).toContain("No space left");
    expect(fill.stdout.split("\n").slice(0, 2).map(Number)).toEqual([256, 64]);
    expect(await box().isWell()).toBe(true);
    await box().sh("rm -f /tmp/f* /dev/shm/f*");
  });

  it("processors: three loops get half of one", async () => {
    const used = async () => {
      const text = await box().figure("cpuacct", "cpuacct.usage", "cpu.stat");
      return Number(/usage_usec (\d+)/.exec(text)?.[1] ?? Number(text) / 1_000) / 1_000;
    };
    const before = await used();
    const { reason } = await box().sh("for i in 1 2 3; do (while :; do :; done) & done; sleep 100", { seconds: 3 });
    expect(reason).toBe("timeout");
    expect((await used()) - before).toBeLessThan(2_600);
  });

  it("processes: no more than the limit, and some are kept for the runner", async () => {
    const bomb = box().sh("for i in $(seq 200); do sleep 30 & done; wait", { id: "many", seconds: 20 });
    await eventually(async () => (await box().commandPids()).length >= 40, { what: "its processes" });
    expect((await box().commandPids()).length).toBeLessThanOrEqual(96 - 48);
    expect(Number(await box().figure("pids", "pids.current"))).toBeLessThan(96);
    const other = box().connect();
    expect(await other.boot()).toBe(box().boot);
    await other.kill("many");
    await other.close();
    expect((await bomb).reason).toBe("killed");
    expect(await box().commandPids()).toEqual([]);
  });

  it("a file: no larger than the limit", async () => {
    const { stdout } = await box().sh("head -c 30m /dev/zero >/workspace/f; stat -c %s /workspace/f; rm /workspace/f");
    expect(Number(stdout)).toBe(20 * megabyte);
  });

  it("no core files", async () => expect((await box().sh("ulimit -c; ulimit -Hc")).stdout).toBe("0\n0\n"));

  it("open files", async () => {
    const program =
      "import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print(n < 8192)";
    expect((await box().sh(`python3 -c "${program}"`)).stdout).toBe("True\n");
  });
});
