import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { type Conversation, secret } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, setMember } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";
import { localHost } from "../../support/sandbox-host.ts";
import { SecondPodman } from "../../support/second-podman.ts";

// On a busy machine a container takes its time.
vi.setConfig({ testTimeout: 180_000 });

describeSandbox("sandboxes on two hosts", () => {
  onEachDatabase((database, kind) => {
    if (kind === "postgres")
      return void it.skip("are held on the embedded database alone: containers take long, and the statements are held on both by tests of their own", () => {});
    const homeserver = secret(8);
    let agent: AgentRow;
    let second: SecondPodman;
    let folder: string;
    let skewMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skewMs };
    const made: Computers[] = [];
    /** Another process of the installation. */
    const bridge = () => {
      const hosts = [
        { name: "near", host: localHost(), runningMost: 20 },
        { name: "far", host: second.host, runningMost: 20 },
      ];
      const computers = new Computers(database(), { homeserver, hosts, backups: folder, clock });
      made.push(computers);
      return computers;
    };
    beforeAll(async () => {
      agent = await addAgent(database());
      second = await SecondPodman.make();
      folder = await mkdtemp(join(tmpdir(), "clevernet-backups-"));
    });
    afterAll(async () => {
      await second.comeBack();
      for (const one of made) await one.remove();
      await second.remove();
      await rm(folder, { recursive: true });
    });
    const room = async (): Promise<Conversation> => {
      const roomId = newRoom();
      await setMember(database(), roomId, agent.userId, "join");
      return { agent: agent.name, roomId };
    };
    const hostOf = async (computers: Computers, at: Conversation) => (await computers.table.find(at))?.host;
    const change = (at: Conversation, columns: string) =>
      database().run((sql) => sql`update sandboxes set ${sql.unsafe(columns)} where room_id = ${at.roomId}`);

    it("are made where fewest run, and stay there for every process", async () => {
      const computers = bridge();
      await computers.sandboxes.pool.pass();
      const rooms = await Promise.all([room(), room()]);
      for (const at of rooms) await computers.sandboxes.use(at);
      const hosts = await Promise.all(rooms.map((at) => hostOf(computers, at)));
      expect([...hosts].sort()).toEqual(["far", "near"]);
      const far = rooms[hosts.indexOf("far")] ?? (await room());
      const { boot } = await computers.sandboxes.use(far);
      expect((await bridge().sandboxes.use(far)).boot).toBe(boot);
      expect(await second.host.find(await computers.sandboxes.names.label())).toHaveLength(1);
      for (const at of rooms) await computers.sandboxes.reset(at);
    });

    it("wait while their host is away, go on elsewhere from their backup, and are kept for a day where they were", async () => {
      const computers = bridge();
      const at = await room();
      await computers.sandboxes.pool.pass();
      await computers.table.claim(at, await computers.sandboxes.names.of(at), "far");
      await computers.out(at, "mkdir src; echo saved >src/file; chmod 500 src");
      // As if nobody had backed it up for long.
      await change(at, "created_at = now() - interval '1 hour', used_at = now() - interval '1 minute'");
      await computers.keeper.round();
      expect((await computers.table.find(at))?.backedUpAt).not.toBeNull();
      await change(at, "backed_up_at = now() - interval '130 minutes'");
      await computers.out(at, "echo lost >later");
      await second.leave();
      await computers.sandboxes.close();
      for (let look = 1; look <= 3; look++) await computers.sandboxes.placing.look();
      expect(computers.said).toEqual([expect.stringContaining("The machine of my computer here does not answer now")]);
      await expect(computers.sandboxes.use(at)).rejects.toThrow(
        /is on a machine that does not answer now \(far\).*as they were 2 hours ago/,
      );
      expect(await computers.sandboxes.status(at)).toMatchObject({ isAway: true, isRunning: false });
      skewMs += 300_000;
      expect(await computers.out(at, "cat src/file; ls later 2>&1 | wc -l")).toBe("saved\n1\n");
      expect(await hostOf(computers, at)).toBe("near");
      expect(computers.said.at(-1)).toMatch(/on another machine now.* as they were 2 hours ago/);
      // Whoever comes later, in another process, finds it there, and its files as they are now.
      await computers.out(at, "echo new >src2");
      const other = bridge();
      expect(await other.out(at, "cat src2 src/file")).toBe("new\nsaved\n");

      await second.comeBack();
      for (const _ of [1, 2]) await computers.keeper.round();
      const label = await computers.sandboxes.names.label();
      const name = await computers.sandboxes.names.of(at);
      expect(await second.host.find(label)).toMatchObject([{ id: name, isRunning: false }]);
      expect(await other.out(at, "cat src2")).toBe("new\n");
      await database().run((sql) => sql`update stray_sandboxes set found_at = now() - interval '25 hours'`);
      await computers.keeper.round();
      expect(await second.host.find(label)).toEqual([]);
      await expect(computers.sandboxes.placing.move(at)).rejects.toThrow("answers: the computer stays there");
    });

    it("without a backup are made anew only when somebody says so, and are empty", async () => {
      const computers = bridge();
      const at = await room();
      await computers.sandboxes.pool.pass();
      await computers.table.claim(at, await computers.sandboxes.names.of(at), "far");
      await computers.out(at, "echo lost >file");
      await second.leave();
      await computers.sandboxes.close();
      for (let look = 1; look <= 3; look++) await computers.sandboxes.placing.look();
      skewMs += 300_000;
      await expect(computers.sandboxes.use(at)).rejects.toThrow(/no backup of its files: `!sandbox move`/);
      expect((await computers.sandboxes.placing.move(at)).at.name).toBe("near");
      expect(await computers.out(at, "ls")).toBe("");
      await second.comeBack();
    });
  });
});
