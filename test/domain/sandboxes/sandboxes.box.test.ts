import { afterEach, beforeAll, expect, it } from "vitest";
import { PodmanHost } from "../../../src/adapters/sandbox/podman-host.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { type Conversation, HOME, secret } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newRoom, setMember } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";

describeSandbox("sandboxes of conversations", () => {
  onEachDatabase((database, kind) => {
    /** Where nothing depends on the database, one is enough. */
    const once = it.runIf(kind === "embedded");
    let agent: AgentRow;
    const made: Computers[] = [];
    beforeAll(async () => {
      agent = await addAgent(database());
    });
    afterEach(async () => {
      for (const one of made.splice(0)) await one.remove();
      await database().run((sql) => sql`delete from sandboxes`);
    });
    const installation = (options: Partial<ConstructorParameters<typeof Computers>[1]> = {}) => {
      const computers = new Computers(database(), { homeserver: secret(8), ...options });
      made.push(computers);
      return computers;
    };
    const settings = (computers: Computers) => computers.sandboxes.settings;
    const room = (): Conversation => ({ agent: agent.name, roomId: newRoom() });
    const status = async (computers: Computers, at: Conversation) => (await computers.sandboxes.status(at))?.isRunning;
    /** As if nobody had used it since. */
    const unused = (at: Conversation, time: string) =>
      database().run(
        (sql) => sql`update sandboxes set used_at = now() - ${time}::interval where room_id = ${at.roomId}`,
      );

    once("each have files of their own", async () => {
      const computers = installation();
      const [one, other] = [room(), room()];
      expect(await computers.out(one, "echo secret >/workspace/file; ls /workspace")).toBe("file\n");
      expect(await computers.out(other, "ls /workspace; cat /workspace/file 2>&1 | wc -l")).toBe("1\n");
      expect(await computers.sandboxes.status(room())).toBeUndefined();
    });

    it("are found again after a restart of the bridge, as they were", async () => {
      const homeserver = secret(8);
      const before = installation({ homeserver });
      const at = room();
      const { boot } = await before.sandboxes.use(at);
      await before.sandboxes.close();
      const after = installation({ homeserver });
      expect((await after.sandboxes.use(at)).boot).toBe(boot);
      expect(await status(after, at)).toBe(true);
    });

    it("are made once by several who want one at the same time, in several processes", async () => {
      const homeserver = secret(8);
      const processes = [installation({ homeserver }), installation({ homeserver })];
      const at = room();
      const uses = processes.flatMap(({ sandboxes }) => [sandboxes.use(at), sandboxes.use(at)]);
      const boots = new Set((await Promise.all(uses)).map(({ boot }) => boot));
      expect(boots.size).toBe(1);
    });

    it("are stopped when nobody has used them for long, and woken with their files", async () => {
      const computers = installation();
      const [idle, used] = [room(), room()];
      await computers.out(idle, "echo kept >/workspace/file; nohup sleep 1000 >/dev/null 2>&1 &");
      await computers.sandboxes.use(used);
      await unused(idle, `${settings(computers).idleSeconds + 1} seconds`);
      expect(await computers.sandboxes.stopIdle()).toBe(1);
      expect(await status(computers, idle)).toBe(false);
      expect(await status(computers, used)).toBe(true);
      expect(await computers.out(idle, "cat /workspace/file; pgrep -c sleep || true")).toBe("kept\n0\n");
      // The command that has looked may be ending still.
      await expect.poll(() => computers.journal.underWay(idle)).toHaveLength(0);
    });

    it("that another process has stopped are woken, before the end of the link to them is heard", async () => {
      const homeserver = secret(8);
      const [one, other] = [installation({ homeserver }), installation({ homeserver })];
      const at = room();
      const { runner } = await one.sandboxes.use(at);
      Object.defineProperty(runner, "isOpen", { value: true });
      await unused(at, `${settings(one).idleSeconds + 1} seconds`);
      expect(await other.sandboxes.stopIdle()).toBe(1);
      expect(await status(one, at)).toBe(false);
      expect(await one.out(at, "echo awake")).toBe("awake\n");
    });

    once("are busy while a command runs in the background, or a port leads to a server", async () => {
      const computers = installation();
      const [background, served] = [room(), room()];
      const { idleSeconds } = settings(computers);
      for (const { roomId } of [background, served]) await setMember(database(), roomId, agent.userId, "join");
      await computers.run(background, "exec sleep 1000", { isBackground: true, seconds: null });
      await computers.run(served, "nohup python3 -m http.server 8000 >/dev/null 2>&1 &");
      await computers.out(served, "until curl -s localhost:8000 >/dev/null; do sleep 0.2; done");
      await computers.ports.open(served, 8_000);
      const isLong = async () => {
        for (const at of [background, served]) await unused(at, `${idleSeconds + 1} seconds`);
        await database().run((sql) => sql`update sandboxes set busy_at = null`);
        await computers.keeper.round();
        return Promise.all([background, served].map((at) => status(computers, at)));
      };
      expect(await isLong()).toEqual([true, true]);
      const [row] = await computers.journal.underWay(background);
      if (!row) throw new Error("it runs in the background");
      await computers.journal.end(background, row);
      await expect.poll(() => computers.journal.underWay(background)).toEqual([]);
      expect(await isLong()).toEqual([false, true]);
    });

    once("reach only those hosts that the agent allows, of those that the configuration does", async () => {
      const allowed = ["one.example.com", "two.example.com"];
      const computers = installation({ settings: { network: allowed }, network: ["two.example.com", "npm"] });
      const at = room();
      for (const host of ["one.example.com", "registry.npmjs.org"])
        expect(await computers.out(at, `curl -s http://${host}/`)).toContain(`${host} is not allowed`);
      const closed = installation({ settings: { network: allowed }, network: [] });
      expect(await closed.out(room(), "echo [$http_proxy]")).toBe("[]\n");
    });

    it("wait for whoever stops them, and for nobody who has died meanwhile", async () => {
      const computers = installation();
      const at = room();
      await computers.sandboxes.use(at);
      await unused(at, "1 hour");
      const [{ name } = { name: "" }] = await computers.table.claimIdle(900, ["default"]);
      let isUsed = false;
      const use = computers.sandboxes.use(at).then(() => (isUsed = true));
      await new Promise((resolve) => setTimeout(resolve, 600));
      expect(isUsed).toBe(false);
      await computers.host.stop(name);
      await computers.table.markStopped(name);
      await use;
      await unused(at, "1 hour");
      await computers.table.claimIdle(900, ["default"]);
      await database().run((sql) => sql`update sandboxes set stopping_since = now() - interval '2 minutes'`);
      await computers.sandboxes.use(at);
    });

    it("make room for others, the longest idle first; where all are in use, people are told", async () => {
      const computers = installation({ runningMost: 2 });
      const [one, two, three] = [room(), room(), room()];
      await computers.sandboxes.use(one);
      await computers.sandboxes.use(two);
      await expect(computers.sandboxes.use(three)).rejects.toThrow(/All 2 computers are in use now.*runningMost/);
      await unused(two, "2 hours");
      await unused(one, "1 hour");
      await computers.sandboxes.use(three);
      expect(await Promise.all([one, two, three].map((at) => status(computers, at)))).toEqual([true, false, true]);
    });

    it("are empty after a reset, and what ran in them is lost", async () => {
      const computers = installation();
      const at = room();
      const running = computers.run(at, "echo x >/workspace/x; sleep 1000", { sources: [newRoom()] });
      await eventually(async () => (await computers.out(at, "cat /workspace/x")) === "x\n", { what: "it to run" });
      expect(await computers.sandboxes.status(at)).toMatchObject({ isThere: true });
      expect(await computers.sandboxes.reset(at)).toBe(true);
      expect(await computers.sandboxes.status(at)).toMatchObject({ isRunning: false, isThere: false });
      expect((await running).outcome).toEqual({ reason: "lost" });
      const { outcome, sources } = await computers.run(at, "ls /workspace");
      expect(outcome?.stdout?.text).toBe("");
      expect(sources).toEqual([]);
      expect(await computers.sandboxes.reset(room())).toBe(false);
    });

    it("are removed with the agent's room, and with the agent; its home stays", async () => {
      const computers = installation();
      const [stays, left, home] = [room(), room(), { agent: agent.name, roomId: HOME }];
      await setMember(database(), stays.roomId, agent.userId, "join");
      await setMember(database(), left.roomId, agent.userId, "leave");
      for (const at of [stays, left, home]) await computers.sandboxes.use(at);
      await computers.keeper.round();
      expect(await computers.sandboxes.status(left)).toBeUndefined();
      expect(await Promise.all([stays, home].map((at) => status(computers, at)))).toEqual([true, true]);
    });

    it("that belong to no conversation are removed at the second look; another installation's never", async () => {
      const [computers, others] = [installation(), installation()];
      const [at, theirs] = [room(), room()];
      await computers.sandboxes.use(at);
      await others.sandboxes.use(theirs);
      await database().run((sql) => sql`delete from sandboxes`);
      expect(await computers.collector.findOrphans()).toHaveLength(1);
      await computers.keeper.round();
      expect(await computers.collector.findOrphans()).toHaveLength(1);
      await computers.keeper.round();
      expect(await computers.collector.findOrphans()).toEqual([]);
      expect(await others.collector.findOrphans()).toHaveLength(1);
    });

    once("cannot be had where the self-test fails: all are told what to do", async () => {
      const host = new PodmanHost({ podman: "/nowhere/podman", clock: systemClock });
      const { sandboxes } = new Computers(database(), { homeserver: secret(8), host });
      expect(sandboxes.isOffered).toBe(true);
      await expect(sandboxes.use(room())).rejects.toThrow(/^There are no computers.*Install Podman 4\.3 or newer/);
      expect(sandboxes.isOffered).toBe(false);
    });

    once("tell people only that it cannot be done, where their host refuses", async () => {
      const computers = installation();
      const { settings } = computers.sandboxes;
      // The image passes the self-test, and then is gone.
      await computers.sandboxes.pool.pass();
      Object.assign(settings, { image: "localhost/clevernet-nowhere:secret" });
      const error = await computers.sandboxes.use(room()).catch((thrown: unknown) => thrown);
      expect(String(error)).toMatch(/^UserError: The computer .* Make it: npm run clevernet -- sandbox build\.$/);
      expect(String(error)).not.toContain("nowhere");
    });
  });
});
