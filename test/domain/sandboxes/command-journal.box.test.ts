import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ShuttingDown, UserError } from "../../../src/base/lib/errors.ts";
import { HOME, secret } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newRoom } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";

describeSandbox("commands in sandboxes", () => {
  onEachDatabase((database) => {
    const homeserver = secret(8);
    let agent: AgentRow;
    let computers: Computers;
    beforeAll(async () => {
      agent = await addAgent(database());
      computers = another();
    });
    afterAll(async () => {
      await computers.remove();
    });
    /** Another process of the same installation. */
    const another = () => new Computers(database(), { homeserver });
    const shared = () => ({ agent: agent.name, roomId: HOME });
    const fresh = () => ({ agent: agent.name, roomId: newRoom() });
    const key = () => `t-${secret(6)}`;
    const began = async (command: string, at = shared()) =>
      eventually(async () => (await computers.out(at, command)).trim() !== "", { what: command });

    it("tell how they ended, with both streams apart", async () => {
      const { number, outcome } = await computers.run(shared(), "echo out; echo err >&2; exit 3");
      expect(number).toBeGreaterThan(0);
      expect(outcome).toEqual({
        reason: "exit",
        code: 3,
        stdout: { text: "out\n", isCut: false },
        stderr: { text: "err\n", isCut: false },
      });
      expect((await computers.run(shared(), "kill -TERM $$")).outcome).toMatchObject({ reason: "exit", signal: 15 });
    });

    it("show no escapes and control characters", async () => {
      const text = String.raw`\033[31mred\033[0m \033]0;title\007x\033]8;;http://a\033\\y 10%%\r 99%%\r100%%\nbell\007 nul\000`;
      expect(await computers.out(shared(), `printf '${text}'`)).toBe("100%\nbell nul\uFFFD");
    });

    it("are shown cut in the middle, and are whole in a file", async () => {
      const { number, outcome } = await computers.run(shared(), "seq 1000000; echo end >&2");
      expect(outcome?.stdout?.isCut).toBe(true);
      expect(outcome?.stdout?.text.length).toBeLessThanOrEqual(8_000);
      expect(outcome?.stdout?.text).toMatch(/^1\n2\n3\n[\s\S]*\n\[…\]\n[\s\S]*999999\n1000000\n$/);
      expect(outcome?.stderr?.text).toBe("end\n");
      expect(outcome?.bytes).toBe(6_888_900);
      const file = `/workspace/.output/${number}`;
      expect(await computers.out(shared(), `grep -v end ${file} | cmp - <(seq 1000000) && wc -l <${file}`)).toBe(
        "1000001\n",
      );
    });

    it("end at their time limit", async () => {
      const begin = performance.now();
      const { outcome } = await computers.run(shared(), "echo before; sleep 60", { seconds: 1 });
      expect(outcome).toMatchObject({ reason: "timeout", stdout: { text: "before\n" } });
      expect(performance.now() - begin).toBeLessThan(5_000);
    });

    it("tell that memory ran out", async () => {
      const hungry = "python3 -c 'x = bytearray(2 << 30)'";
      expect((await computers.run(shared(), hungry)).outcome).toMatchObject({ reason: "memory" });
      expect((await computers.run(shared(), `${hungry}; echo $?; exit 137`)).outcome).toMatchObject({
        reason: "memory",
      });
      expect((await computers.run(shared(), "kill -9 $$")).outcome).toMatchObject({ reason: "exit", signal: 9 });
    });

    it("end within a second when they are stopped, with all that they have started", async () => {
      const stop = new AbortController();
      const mark = `sleep 4${Math.floor(Math.random() * 1e6)}`;
      const running = computers.run(shared(), `setsid ${mark} & ${mark}`, {}, { signal: stop.signal });
      running.catch(() => {});
      await began(`pgrep -f '^${mark}' || true`);
      const begin = performance.now();
      stop.abort(new Error("stopped"));
      await expect(running).rejects.toThrow("stopped");
      expect(performance.now() - begin).toBeLessThan(1_000);
      await expect.poll(() => computers.out(shared(), `pgrep -f '^${mark}' || true`)).toBe("");
    });

    it("go on in the background, keep a log, and are ended by their number", async () => {
      const at = fresh();
      const { number, outcome } = await computers.run(at, "echo on; exec sleep 1000", {
        isBackground: true,
        seconds: null,
      });
      expect(outcome).toBeUndefined();
      await began(`cat /workspace/.output/${number}.log`, at);
      const one = { number, isBackground: true };
      await expect.poll(() => computers.journal.underWay(at)).toMatchObject([one]);
      const [row] = await computers.journal.underWay(at);
      if (!row) throw new Error("it is under way");
      expect(await computers.journal.end(at, row)).toBe(true);
      await expect.poll(() => computers.journal.underWay(at)).toEqual([]);
      expect(await computers.journal.end(at, row)).toBe(false);
    });

    it("leave servers behind, which keep their log", async () => {
      const at = fresh();
      const { number, outcome } = await computers.run(at, "echo first; (sleep 1; echo second; sleep 1000) &");
      expect(outcome).toMatchObject({ reason: "exit", code: 0, stdout: { text: "first\n" } });
      await expect.poll(() => computers.out(at, `cat /workspace/.output/${number}`)).toBe("first\nsecond\n");
      // Its last reader may be ending still.
      await expect.poll(async () => (await computers.journal.underWay(at)).map((row) => row.number)).toEqual([number]);
    });

    it("run once, whoever goes on with them after a death, before it is sent, while it runs, and after its end", async () => {
      const at = fresh();
      const count = "cat /workspace/count";
      const { boot } = await computers.sandboxes.use(at);
      const draft = { ...at, boot, requesters: [], sources: [], isBackground: false };

      const unsent = { key: key(), command: "echo one >>/workspace/count" };
      await computers.commands.begin({ ...draft, ...unsent });
      // By now its computer is closed to somebody: what has begun goes on, and nothing else begins.
      const mayBegin = () => Promise.reject(new UserError("closed here"));
      await expect(computers.run(at, unsent.command, {}, { mayBegin })).rejects.toThrow("closed here");
      expect((await another().run(at, unsent.command, unsent, { mayBegin })).outcome).toMatchObject({
        reason: "exit",
        code: 0,
      });
      expect(await computers.out(at, count)).toBe("one\n");

      const long = { key: key(), command: "echo two >>/workspace/count; echo a; sleep 3; echo b" };
      const death = new AbortController();
      const dying = computers.run(at, long.command, long, { signal: death.signal });
      await began(`grep two /workspace/count`, at);
      death.abort(new ShuttingDown("the process ends"));
      await expect(dying).rejects.toThrow(ShuttingDown);
      const next = another();
      const results = await Promise.all([next.run(at, long.command, long), another().run(at, long.command, long)]);
      expect(results.map(({ outcome }) => outcome?.stdout?.text)).toEqual(["a\nb\n", "a\nb\n"]);

      expect((await another().run(at, long.command, long)).outcome?.stdout?.text).toBe("a\nb\n");
      expect(await computers.out(at, count)).toBe("one\ntwo\n");
    });

    it("are not known, and not sent again, where the sandbox was started anew meanwhile", async () => {
      const at = fresh();
      const { boot } = await computers.sandboxes.use(at);
      const draft = { ...at, boot, requesters: [], sources: [], isBackground: false };
      const call = { key: key(), command: "echo ran >>/workspace/count" };
      await computers.commands.begin({ ...draft, ...call });
      await computers.sandboxes.restart(at);
      // A machine that lost its power has told nobody that its commands are over.
      await database().run((sql) => sql`update sandbox_commands set outcome = null where key = ${call.key}`);
      expect((await another().run(at, call.command, call)).outcome).toEqual({ reason: "lost" });
      expect((await another().run(at, call.command, call)).outcome).toEqual({ reason: "lost" });
      expect(await computers.out(at, "ls /workspace")).toBe("");
    });

    it("are lost, and say so, when their sandbox ends while they run", async () => {
      const at = fresh();
      const running = computers.run(at, "echo x >/workspace/x; sleep 100");
      await began("cat /workspace/x", at);
      const status = await computers.sandboxes.status(at);
      await computers.host.stop(status?.name ?? "");
      expect((await running).outcome).toEqual({ reason: "lost" });
      expect(await computers.out(at, "cat /workspace/x")).toBe("x\n");
    });

    it("are ended by the host where the runner does not do it, and others are told", async () => {
      const at = fresh();
      await computers.sandboxes.use(at);
      const { runner } = await computers.sandboxes.use(at);
      const { boot } = await computers.sandboxes.use(at);
      // The runner knows no limit of this one, as if it did not keep it.
      const call = { key: key(), command: "sleep 1000", seconds: 1 };
      await runner.start({ id: call.key, boot, argv: ["sleep", "1000"], seconds: null });
      await computers.commands.begin({ ...at, ...call, boot, requesters: [], sources: [], isBackground: false });
      const begin = performance.now();
      expect((await computers.run(at, call.command, call)).outcome?.reason).toBe("timeout");
      expect(performance.now() - begin).toBeLessThan(20_000);
      expect(await computers.out(at, "pgrep -c sleep || true")).toBe("0\n");
    });

    it("are forgotten by the runner once their end is stored: there is room for any number of them", async () => {
      const at = fresh();
      for (let index = 0; index < 40; index++) expect(await computers.out(at, `echo ${index}`)).toBe(`${index}\n`);
      const { runner } = await computers.sandboxes.use(at);
      await sleep(100);
      expect((await runner.list()).length).toBeLessThan(5);
    });

    it("are refused where too many run, and can be given again", async () => {
      const at = fresh();
      for (let index = 0; index < 32; index++)
        await computers.run(at, "exec sleep 1000", { isBackground: true, seconds: null });
      const call = { key: key(), command: "echo there" };
      await expect(computers.run(at, call.command, call)).rejects.toThrow(/32 commands are kept[\s\S]*End some/);
      const [row] = await computers.journal.underWay(at);
      if (!row) throw new Error("commands are under way");
      await computers.journal.end(at, row);
      await expect.poll(() => computers.journal.underWay(at)).toHaveLength(31);
      expect((await computers.run(at, call.command, call)).outcome?.stdout?.text).toBe("there\n");
    });

    it("are refused in words where no processes are left, in the foreground and in the background", async () => {
      const at = fresh();
      const script =
        "import threading, time\nthreading.stack_size(65536)\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n  except RuntimeError: time.sleep(0.01)";
      const { number } = await computers.run(at, `exec python3 -c '${script}'`, { isBackground: true, seconds: null });
      const say = (isBackground: boolean) =>
        computers.run(at, "true", { isBackground }).then(({ outcome }) => JSON.stringify(outcome), String);
      await expect.poll(() => say(false)).toContain("no processes left: end what runs with !stop N");
      expect(await say(true)).toContain("no processes left");
      const [row] = await computers.journal.underWay(at);
      expect(row?.number).toBe(number);
      if (row) await computers.journal.end(at, row);
      await expect.poll(() => computers.journal.underWay(at)).toEqual([]);
      expect(await computers.out(at, "echo there")).toBe("there\n");
    });

    it("that nobody waits for any more are ended", async () => {
      const at = fresh();
      const call = { key: key(), command: "echo x >/workspace/x; sleep 1000" };
      const death = new AbortController();
      const dying = computers.run(at, call.command, call, { signal: death.signal });
      await began("cat /workspace/x", at);
      death.abort(new ShuttingDown("the process ends"));
      await expect(dying).rejects.toThrow();
      await computers.journal.endDeserted();
      // The command that has looked may be ending still.
      await expect.poll(() => computers.journal.underWay(at)).toHaveLength(1);
      await database().run(
        (sql) => sql`
          insert into operations (key, tool, kind, summary, input, input_hash, agent, room_id, by, requesters, state, sources, taint, place)
          values (${call.key}, 'run_command', 'create', '', '{}', '', ${at.agent}, ${at.roomId}, 'person', '{}', 'interrupted', '{}', '{}', 0)`,
      );
      await computers.journal.endDeserted();
      await expect.poll(() => computers.journal.underWay(at)).toEqual([]);
    });

    it("carry the sources of all who have commanded their sandbox", async () => {
      const at = fresh();
      const [one, other] = [newRoom(), newRoom()];
      expect((await computers.run(at, "true", { sources: [one] })).sources).toEqual([one]);
      expect([...(await computers.run(at, "true", { sources: [other] })).sources].sort()).toEqual([one, other].sort());
    });

    describe("the output so far", () => {
      it("is told while it grows", async () => {
        const seen: string[] = [];
        const onOutput: NonNullable<Parameters<Computers["run"]>[3]>["onOutput"] = ({ stdout }) =>
          seen.push(stdout.text);
        await computers.run(shared(), "echo a; sleep 0.3; echo b", {}, { onOutput });
        expect(seen).toEqual(["a\n", "a\nb\n"]);
      });
    });
  });
});
