import { createHash, randomBytes } from "node:crypto";
import { connect, createServer } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { afterEach, expect, it } from "vitest";
import { encodeFrame } from "../../../src/adapters/sandbox/protocol.ts";
import { isOtherBoot, Runner } from "../../../src/adapters/sandbox/runner.ts";
import { RunnerLink } from "../../../src/adapters/sandbox/runner-link.ts";
import type { CommandEnd, CommandOutput } from "../../../src/adapters/sandbox/runner-words.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { secret } from "../../../src/base/lib/ids.ts";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const mebibyte = 1 << 20;

/** Everything that comes, and the end. */
async function collect(output: AsyncGenerator<CommandOutput, CommandEnd>) {
  const pieces: CommandOutput[] = [];
  for (;;) {
    const { value, done } = await output.next();
    if (done) return { pieces, end: value, bytes: Buffer.concat(pieces.map(({ data }) => data)) };
    pieces.push(value);
  }
}

describeSandbox("the runner and its client", () => {
  const box = sharedBox();
  const start = (id: string, script: string, more = {}) =>
    box().runner.start({ id, boot: box().boot, argv: ["bash", "-c", script], seconds: 30, ...more });
  const place = (id: string, from = 0) => ({ id, boot: box().boot, from });
  const hasEnded = (id: string) =>
    eventually(async () => (await box().runner.list()).find((one) => one.id === id)?.isLeft === false, {
      what: `the end of ${id}`,
    });
  afterEach(async () => {
    for (const { id } of await box().runner.list()) {
      await box().runner.kill(id);
      await hasEnded(id);
      await box().runner.forget(id);
    }
  });

  it("tells stdout and stderr apart, with one offset for both, and the exit code", async () => {
    const { stdout, stderr, code, signal, size } = await box().sh(
      "echo out; sleep 0.2; echo err >&2; sleep 0.2; echo more; exit 7",
    );
    expect({ stdout, stderr, code, signal, size }).toEqual({
      stdout: "out\nmore\n",
      stderr: "err\n",
      code: 7,
      signal: null,
      size: 13,
    });
  });

  it("gives what the last moment has written, on both streams", async () => {
    for (let turn = 0; turn < 20; turn++) {
      const { stdout, stderr } = await box().sh(
        "head -c 60000 /dev/zero | tr '\\0' o; head -c 60000 /dev/zero | tr '\\0' e >&2",
      );
      expect([stdout.length, stderr.length]).toEqual([60_000, 60_000]);
    }
  });

  it("says by which signal a command died, and that its time was over, and that it was killed", async () => {
    expect(await box().sh("kill -SEGV $$")).toMatchObject({ code: null, signal: 11, reason: "ended" });
    expect(await box().sh("sleep 20", { seconds: 0.3 })).toMatchObject({ code: null, signal: 9, reason: "timeout" });
    await start("killed", "sleep 20");
    await box().runner.kill("killed");
    expect((await collect(box().runner.follow(place("killed")))).end).toMatchObject({ signal: 9, reason: "killed" });
  });

  it("runs it in its folder, with its environment, and says if it cannot be started", async () => {
    const run = async (argv: [string, ...string[]], more = {}) => {
      const { bytes, end } = await collect(
        box().runner.run({ id: secret(4), boot: box().boot, argv, seconds: 5, ...more }),
      );
      return [end.code, bytes.toString()];
    };
    expect(await run(["pwd"])).toEqual([0, "/workspace\n"]);
    expect(await run(["bash", "-c", "pwd; echo $X $HOME"], { cwd: "/tmp", env: { X: "ä b" } })).toEqual([
      0,
      "/tmp\nä b /workspace/.home\n",
    ]);
    expect(await run(["/no/such"])).toEqual([127, "clevernet: /no/such: No such file or directory\n"]);
    expect(await run(["true"], { cwd: "/no/such" })).toEqual([127, expect.stringContaining("No such file")]);
    expect(await run(["/etc/passwd"])).toEqual([126, expect.stringContaining("Permission denied")]);
    expect(await run(["true"], { cwd: "/run/runner" })).toEqual([126, expect.stringContaining("Permission denied")]);
  });

  it("the same id never runs twice, not even when it is forgotten", async () => {
    const script = "echo once >>/workspace/once; sleep 0.3";
    expect(await Promise.all([start("same", script), start("same", script)])).toEqual([true, false]);
    expect(await start("same", script)).toBe(false);
    await hasEnded("same");
    expect(await start("same", script)).toBe(false);
    await box().runner.forget("same");
    await box().runner.forget("same");
    await expect(start("same", script)).rejects.toMatchObject({ code: "forgotten" });
    await expect(collect(box().runner.follow(place("same")))).rejects.toMatchObject({ code: "forgotten" });
    expect((await box().sh("cat /workspace/once; rm /workspace/once")).stdout).toBe("once\n");
  });

  it("refuses what belongs to another boot, what it does not know, and what is no request", async () => {
    await expect(start("old", "true", { boot: "0".repeat(32) })).rejects.toSatisfy(isOtherBoot);
    await expect(collect(box().runner.follow({ id: "x", boot: "0".repeat(32) }))).rejects.toSatisfy(isOtherBoot);
    await expect(collect(box().runner.follow(place("nobody")))).rejects.toMatchObject({ code: "unknown" });
    for (const id of ["", "../../x", "a b", "x".repeat(101), "a\nb"])
      await expect(start(id, "true")).rejects.toMatchObject({ code: "bad-request" });
    await expect(start("nul", "true", { env: { A: "a\0b" } })).rejects.toMatchObject({ code: "bad-request" });
    await expect(start("none", "true", { argv: [] })).rejects.toMatchObject({ code: "bad-request" });
    expect(await box().runner.list()).toEqual([]);
  });

  it("gives all of a long output that is wanted whole, to a slow reader, over lost streams, and from both pipes", async () => {
    const streams: { destroy(): unknown }[] = [];
    const connectAgain = async () => {
      const stream = await box().host.connect(box().id);
      streams.push(stream);
      return stream;
    };
    const runner = new Runner({ connect: connectAgain, clock: systemClock });
    const script = "seq 1 1200000; head -c 500000 /dev/zero >&2";
    const spec = { id: "whole", boot: box().boot, argv: ["bash", "-c", script], seconds: 30, isWhole: true } as const;
    const hash = { stdout: createHash("sha256"), stderr: createHash("sha256") };
    let at = 0;
    const output = runner.run(spec);
    for (let turn = 0; ; turn++) {
      const { value, done } = await output.next();
      if (done) {
        expect(value).toMatchObject({ code: 0, size: at });
        break;
      }
      expect(value.at).toBe(at);
      at += value.data.length;
      hash[value.stream].update(value.data);
      if (turn % 20 === 10) await systemClock.sleep(10);
      if (turn === 50 || turn === 100) streams.at(-1)?.destroy();
    }
    await runner.close();
    const expected = await box().sh("seq 1 1200000 | sha256sum; head -c 500000 /dev/zero | sha256sum");
    expect(`${hash.stdout.digest("hex")}  -\n${hash.stderr.digest("hex")}  -\n`).toBe(expected.stdout);
    expect(streams.length).toBeGreaterThan(2);
  });

  it("one that is wanted whole and that nobody reads waits, and ends with its time limit", async () => {
    await start("waits", "seq 1 600000", { isWhole: true, seconds: 1.5 });
    await hasEnded("waits");
    const { bytes, end } = await collect(box().runner.follow(place("waits")));
    expect([end.reason, bytes.toString().startsWith("1\n2\n3\n"), bytes.length]).toEqual(["timeout", true, end.size]);
  });

  it("keeps the last MiB, and its offset says what was dropped", async () => {
    await start("big", "seq 1 600000");
    await hasEnded("big");
    const { bytes, end, pieces } = await collect(box().runner.follow(place("big")));
    expect([pieces[0]?.at, bytes.length]).toEqual([end.size - mebibyte, mebibyte]);
    expect(bytes.toString().endsWith("599999\n600000\n")).toBe(true);
    const later = await collect(box().runner.follow(place("big", end.size - 7)));
    expect(later.bytes.toString()).toBe("600000\n");
    expect((await collect(box().runner.follow(place("big", end.size)))).pieces).toEqual([]);
  });

  it("a reader that is slow holds up nobody, and is told what it missed", async () => {
    await start("flood", "for i in $(seq 30); do head -c 200000 /dev/zero; sleep 0.02; done");
    const output = box().runner.follow(place("flood"));
    const first = await output.next();
    await hasEnded("flood");
    expect((await box().sh("echo hi")).stdout).toBe("hi\n");
    const rest = await collect(output);
    const came = rest.bytes.length + (first.done ? 0 : first.value.data.length);
    expect(rest.end.size).toBe(6_000_000);
    expect(came).toBeLessThan(2.2 * mebibyte);
    expect(rest.pieces.at(-1)).toMatchObject({ at: rest.end.size - (rest.pieces.at(-1)?.data.length ?? 0) });
  });

  it("two readers get it, and one that leaves does not hurt the other", async () => {
    await start("two", "for i in $(seq 20); do echo $i; sleep 0.05; done");
    const [one, other] = [box().runner.follow(place("two")), box().runner.follow(place("two"))];
    await one.next();
    await one.return({ code: 0, signal: null, reason: "ended", size: 0 });
    expect((await collect(other)).bytes.toString()).toMatch(/^1\n[\s\S]*20\n$/);
  });

  it("takes input as the command takes it, without what it has taken before", async () => {
    await start("input", "sleep 0.5; sha256sum; echo read", { takesInput: true });
    const data = randomBytes(2 * mebibyte);
    expect(await box().runner.write("input", 0, data)).toBe(data.length);
    // The answer was lost, say: it is sent once more.
    expect(await box().runner.write("input", mebibyte, data.subarray(mebibyte))).toBe(data.length);
    await box().runner.finish("input");
    const { bytes } = await collect(box().runner.follow(place("input")));
    expect(bytes.toString()).toBe(`${createHash("sha256").update(data).digest("hex")}  -\nread\n`);
  });

  it("input that nobody reads is not waited for for ever", async () => {
    await start("closed", "exec <&-; sleep 1", { takesInput: true });
    await box().runner.write("closed", 0, Buffer.alloc(3 * mebibyte));
    expect((await collect(box().runner.follow(place("closed")))).end.code).toBe(0);
  });

  it("without input a command reads nothing", async () =>
    expect((await box().sh("cat; echo done")).stdout).toBe("done\n"));

  it("carries connections to servers of the sandbox, in both directions and both families", async () => {
    const server = (host: string, port: number) =>
      `const s = require('net').createServer({ allowHalfOpen: true }, (c) => { let n = 0; c.on('data', (d) => { n += d.length; c.write(d) }); c.on('end', () => c.end('|' + n)) }); s.listen(${port}, '${host}', () => console.log('up'))`;
    for (const [host, port] of [
      ["127.0.0.1", 7101],
      ["::1", 7102],
    ] as const) {
      await box().runner.start({
        id: `echo-${port}`,
        boot: box().boot,
        argv: ["node", "-e", server(host, port)],
        seconds: 30,
      });
      await eventually(
        async () => ((await box().runner.list()).find(({ id }) => id === `echo-${port}`)?.size ?? 0) > 0,
        { what: "the server" },
      );
      const data = randomBytes(mebibyte);
      const connection = await box().runner.dial(port);
      connection.end(data);
      const came = await buffer(connection);
      expect(came.subarray(0, data.length).equals(data)).toBe(true);
      expect(came.subarray(data.length).toString()).toBe(`|${mebibyte}`);
    }
    await expect(box().runner.dial(7103)).rejects.toMatchObject({ code: "unreachable" });
    await expect(box().runner.dial(70_000)).rejects.toMatchObject({ code: "bad-request" });
  });

  it("a connection that nobody reads holds up nobody", async () => {
    const flood =
      "const s = require('net').createServer((c) => { setInterval(() => c.write(Buffer.alloc(1e6)), 5) }); s.listen(7104, '127.0.0.1', () => console.log('up'))";
    await box().runner.start({
      id: "pour",
      boot: box().boot,
      argv: ["timeout", "8", "node", "-e", flood],
      seconds: 30,
    });
    await eventually(async () => ((await box().runner.list()).find(({ id }) => id === "pour")?.size ?? 0) > 0, {
      what: "the server",
    });
    const connection = await box().runner.dial(7104);
    await systemClock.sleep(1_000);
    expect((await box().sh("echo hi")).stdout).toBe("hi\n");
    expect(connection.readableLength).toBeLessThan(mebibyte);
    connection.destroy();
  });

  it("takes connections of commands to a port, and refuses them once nobody takes them", async () => {
    const outside = createServer((socket) => socket.end("from outside\n"));
    await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));
    const address = outside.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const other = box().connect();
    await other.listen(3128, (inner) => {
      const outer = connect(port, "127.0.0.1");
      inner.pipe(outer).pipe(inner);
    });
    const ask =
      "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 3128)); print(s.makefile().read(), end='')\"";
    expect((await box().sh(ask)).stdout).toBe("from outside\n");
    // Another client takes the port over: the first may be gone without a word.
    await box().runner.listen(3128, (inner) => void inner.end("from the other\n"));
    expect((await box().sh(ask)).stdout).toBe("from the other\n");
    await other.close();
    expect((await box().sh(ask)).stdout).toBe("from the other\n");
    await new Promise((resolve) => outside.close(resolve));
  });

  it("goes on behind a lost stream where it was, again and again, and keeps its ports", async () => {
    const streams: { destroy(): unknown }[] = [];
    const runner = new Runner({
      connect: async () => {
        const stream = await box().host.connect(box().id);
        streams.push(stream);
        return stream;
      },
      clock: systemClock,
    });
    await runner.listen(3129, (inner) => void inner.end("here\n"));
    const lines = Array.from({ length: 40 }, (_, index) => `${index + 1}\n`).join("");
    const cut = (async () => {
      for (let turn = 0; turn < 4; turn++) {
        await systemClock.sleep(500);
        streams.at(-1)?.destroy();
      }
    })();
    const { bytes, end } = await collect(
      runner.run({
        id: "cut",
        boot: box().boot,
        argv: ["bash", "-c", "for i in $(seq 40); do echo $i; sleep 0.08; done"],
        seconds: 30,
      }),
    );
    await cut;
    expect([bytes.toString(), end.code, streams.length > 3]).toEqual([lines, 0, true]);
    const ask =
      "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 3129)); print(s.makefile().read(), end='')\"";
    await runner.list();
    expect((await box().sh(ask)).stdout).toBe("here\n");
    await runner.close();
    expect((await box().sh(`${ask} 2>&1 | tail -1`)).stdout).toContain("refused");
  });

  it("disconnects whoever sends no frames, and lives", async () => {
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "\xff".repeat(100), "\0\0\0\x08\0\0\0\x09aaaa"]) {
      const stream = await box().host.connect(box().id);
      stream.on("error", () => {});
      stream.write(Buffer.from(bytes, "latin1"));
      expect(await text(stream).catch(() => "")).toBe("");
    }
    expect(await box().isWell()).toBe(true);
  });

  it("says which version it speaks, to whoever speaks another", async () => {
    const stream = await box().host.connect(box().id);
    stream.write(encodeFrame({ op: "hello", req: 1, version: 99 }));
    const [first] = (await stream.iterator({ destroyOnReturn: false }).next()).value ? ["answered"] : [];
    expect(first).toBe("answered");
    stream.on("error", () => {}).destroy();
    const wrong = await box().host.connect(box().id);
    const write = wrong.write.bind(wrong);
    // An older client, so to say.
    wrong.write = ((frame: Buffer) =>
      write(
        Buffer.from(frame.toString("latin1").replace('"version":1', '"version":7'), "latin1"),
      )) as typeof wrong.write;
    await expect(RunnerLink.open(wrong, systemClock)).rejects.toMatchObject({ code: "version" });
  });
});
