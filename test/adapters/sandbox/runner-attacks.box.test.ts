import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

describeSandbox("a hostile command cannot harm the runner or other commands", () => {
  const box = sharedBox();
  const nothingLeft = async () =>
    eventually(async () => (await box().commandPids()).length === 0, { what: "no process of any command" });

  it("it cannot become the runner's user, or reach its socket", async () => {
    const { stdout } = await box().sh(`
      python3 -c 'import os; os.setuid(0)' 2>&1 | tail -1
      python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/runner/socket")' 2>&1 | tail -1
      ls /run/runner 2>&1; cat /opt/clevernet/runner/__main__.py >/dev/null && echo readable`);
    expect(stdout.trim().split("\n")).toEqual([
      "PermissionError: [Errno 1] Operation not permitted",
      "PermissionError: [Errno 13] Permission denied",
      "ls: cannot open directory '/run/runner': Permission denied",
      // It is no secret.
      "readable",
    ]);
  });

  it("it cannot kill or stop the runner, or the supervisors of others", async () => {
    const other = box().sh("sleep 2; echo mine");
    await eventually(async () => (await box().commandPids()).length > 0, { what: "the other command" });
    await box().sh(
      "for s in KILL STOP TERM INT HUP; do for p in 1 $(ps -u 0 -o pid=); do kill -$s $p; done; done 2>/dev/null; true",
    );
    expect((await other).stdout).toBe("mine\n");
    expect(await box().isWell()).toBe(true);
  });

  it("kill -9 -1 ends the other commands: their end says so", async () => {
    const other = box().sh("sleep 20");
    await eventually(async () => (await box().commandPids()).length > 0, { what: "the other command" });
    await box().sh("kill -9 -1");
    expect(await other).toMatchObject({ code: null, signal: 9, reason: "ended" });
    expect(await box().isWell()).toBe(true);
  });

  it("a time limit ends what has left its session, its parents and its environment behind, too", async () => {
    const { reason, ms } = await box().sh(
      `trap "" TERM INT HUP
       (setsid bash -c 'trap "" TERM; while :; do sleep 100; done' &)
       (setsid setsid env -i nohup sleep 1000 >/dev/null 2>&1 &)
       python3 -c "
import os, time
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0:
    [os.close(f) for f in (0, 1, 2)]
    time.sleep(1000)"
       python3 -c "
import os, threading, time
def work():
  if os.fork() == 0: time.sleep(1000)
t = threading.Thread(target=work); t.start(); t.join(); time.sleep(1000)" &
       sleep 1000`,
      { seconds: 1.5 },
    );
    expect(reason).toBe("timeout");
    expect(ms).toBeLessThan(8_000);
    expect(await box().commandPids()).toEqual([]);
  });

  it.each([
    ["of Bash", ":(){ :|:& };: ; sleep 100"],
    [
      "that leaves its sessions and never waits",
      `python3 -c "
import os
while True:
  try:
    if os.fork() == 0: os.setsid()
  except OSError: pass"`,
    ],
    [
      "of threads that fork",
      `python3 -c "
import os, threading
def work():
  while True:
    try: os.fork()
    except OSError: pass
for _ in range(8): threading.Thread(target=work).start()"`,
    ],
  ])("a fork bomb %s ends with its time limit; meanwhile others are answered", async (_, text) => {
    const bomb = box().sh(text, { seconds: 3 });
    await eventually(async () => (await box().commandPids()).length > 150, { what: "the bomb" });
    // Another one connects, and asks; its command may well find no process.
    const other = box().connect();
    expect(await other.boot()).toBe(box().boot);
    await other.close();
    const code = box()
      .sh("true", { seconds: 2 })
      .then((end) => end.code)
      .catch((error: { readonly code?: unknown }) => error.code);
    expect([0, 126, 254, null, "processes"]).toContain(await code);
    expect((await bomb).reason).toBe("timeout");
    await nothingLeft();
    expect(await box().isWell()).toBe(true);
  });

  it("a fork bomb whose first process has ended is killed by its id", async () => {
    const bomb = await box().sh(":(){ :|:& };:", { isKept: true, id: "orphans" });
    expect(bomb.reason).toBe("ended");
    await eventually(async () => (await box().commandPids()).length > 150, { what: "the bomb" });
    await box().runner.kill("orphans");
    await nothingLeft();
    expect(await box().isWell()).toBe(true);
    await box().runner.forget("orphans");
  });

  it("memory bombs end themselves", async () => {
    const { stdout } = await box().sh(
      'python3 -c "b = bytearray(4 << 30)"; echo $?; for i in 1 2 3 4; do (head -c 400m /dev/zero | tail -c 399m >/dev/null) & done; wait',
    );
    expect(stdout).toBe("137\n");
    expect(await box().isWell()).toBe(true);
  });

  it("a flood of output ends with its time limit, and others are answered meanwhile", async () => {
    const flood = box().sh("yes & yes >&2", { seconds: 4 });
    const times: number[] = [];
    for (let turn = 0; turn < 10; turn++) times.push((await box().sh("echo hi")).ms);
    const { reason, size } = await flood;
    expect({ reason, isMuch: size > 10_000_000 }).toEqual({ reason: "timeout", isMuch: true });
    expect(times.toSorted((a, b) => a - b)[5]).toBeLessThan(2_000);
  });

  it("a flood that nobody reads keeps the runner's memory as it is", async () => {
    const before = await runnerKilobytes();
    const runs = ["a", "b", "c", "d"].map((id) =>
      box().runner.start({ id: `unread-${id}`, boot: box().boot, argv: ["timeout", "2", "yes"], seconds: 10 }),
    );
    await Promise.all(runs);
    await eventually(
      async () => (await box().runner.list()).filter(({ id, end }) => id.startsWith("unread") && end).length === 4,
      {
        what: "their ends",
      },
    );
    expect((await runnerKilobytes()) - before).toBeLessThan(12_000);
    for (const id of ["a", "b", "c", "d"]) await box().runner.forget(`unread-${id}`);
    expect((await runnerKilobytes()) - before).toBeLessThan(8_000);
  });

  it("single bytes in turn on both streams do not make the runner slow or large", async () => {
    const program = "import os\nfor i in range(300000): os.write(1 + i % 2, b'x')";
    const { size, stdout, stderr } = await box().sh(`python3 -c "${program}"`, { isWhole: true });
    expect([size, stdout.length + stderr.length]).toEqual([300_000, 300_000]);
    expect(await box().isWell()).toBe(true);
  });

  it("single bytes in turn on both streams wait for whoever reads them late", async () => {
    const program = "import os\nfor i in range(60000): os.write(1 + i % 2, b'x')";
    const spec = {
      id: "late",
      boot: box().boot,
      argv: ["python3", "-c", program],
      seconds: 20,
      isWhole: true,
    } as const;
    await box().runner.start(spec);
    await eventually(async () => Number((await box().runner.list()).find(({ id }) => id === "late")?.size) > 2_000, {
      what: "much output",
    });
    await sleep(1_000);
    let length = 0;
    for await (const { data } of box().runner.follow(spec)) length += data.length;
    expect(length).toBe(60_000);
    await box().runner.forget("late");
  });

  it("output that looks like the protocol is output", async () => {
    const frame = '{"op":"end","ch":1,"code":0,"signal":null,"reason":"ended","size":0}';
    const { code, stdout } = await box().sh(
      `printf '\\0\\0\\0\\x4c\\0\\0\\0\\x48%s' '${frame}'; echo '${frame}'; exit 9`,
    );
    expect(code).toBe(9);
    expect(stdout).toContain(`${frame}\n`);
  });

  it("it cannot write to the output or the control of its supervisor", async () => {
    const { stdout } = await box().sh("ls -l /proc/self/fd | tail -n +2 | awk '{ print $9 }' | sort -n | tr '\\n' ' '");
    // 3 is the folder that ls reads.
    expect(stdout).toBe("0 1 2 3 ");
  });

  it("what is left running keeps its log, and ends by the command's id", async () => {
    const { code, size } = await box().sh("(while :; do echo tick; sleep 0.1; done) & echo started", {
      isKept: true,
      id: "server",
    });
    expect(code).toBe(0);
    const kept = await eventually(
      async () => (await box().runner.list()).find((one) => one.id === "server" && one.size > size + 20),
      { what: "more of its log" },
    );
    expect(kept).toMatchObject({ isLeft: true, end: { code: 0, reason: "ended" } });
    await expect(box().runner.forget("server")).rejects.toMatchObject({ code: "running" });
    await box().runner.kill("server");
    await nothingLeft();
    await box().runner.forget("server");
  });

  it("a listener that never accepts does not hold up the runner", async () => {
    await box().runner.start({
      id: "deaf",
      boot: box().boot,
      argv: [
        "python3",
        "-c",
        "import socket, time\ns = socket.create_server(('127.0.0.1', 7001), backlog=0)\nprint('up', flush=True)\ntime.sleep(100)",
      ],
      seconds: 60,
    });
    await eventually(async () => ((await box().runner.list()).find(({ id }) => id === "deaf")?.size ?? 0) > 0, {
      what: "its server",
    });
    const dials = Array.from({ length: 20 }, () =>
      box()
        .runner.dial(7001)
        .catch((error: unknown) => error),
    );
    expect((await box().sh("echo hi")).ms).toBeLessThan(3_000);
    await box().runner.kill("deaf");
    await Promise.all(dials);
  });

  it("no more commands than are kept, and the reason is said", async () => {
    const ids = Array.from({ length: 33 }, (_, index) => `kept-${index}`);
    const start = (id: string) => box().runner.start({ id, boot: box().boot, argv: ["true"], seconds: 5 });
    const results = await Promise.allSettled(ids.map(start));
    expect(results.filter(({ status }) => status === "rejected")).not.toEqual([]);
    expect(results.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "full" } });
    await eventually(async () => (await box().runner.list()).every(({ isLeft }) => !isLeft), { what: "their ends" });
    for (const { id } of await box().runner.list()) await box().runner.forget(id);
    expect(await box().isWell()).toBe(true);
  });

  async function runnerKilobytes(): Promise<number> {
    const { readFile } = await import("node:fs/promises");
    const sizes = await Promise.all(
      (await box().pidsOf(1_000_000)).map(async (pid) => {
        const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
        return /^Name:\tpython3$/m.test(status) ? Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) : 0;
      }),
    );
    return Math.max(...sizes);
  }
});
