import { expect, it } from "vitest";
import { SandboxPlacements } from "../../../src/domain/tables/sandbox-placements.ts";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom } from "../../support/rows.ts";

onEachDatabase((database) => {
  const table = () => new SandboxTable(database());
  const placements = () => new SandboxPlacements(database());
  const scene = async () => {
    const at = { agent: (await addAgent(database())).name, roomId: newRoom() };
    const name = newKey();
    expect(await table().use(at)).toBe("new");
    await Promise.all(["one", "two"].map((host) => table().claim(at, name, host)));
    const row = await table().use(at);
    if (typeof row === "string") throw new Error("it was claimed");
    await table().markAwake(name);
    return { at, name, row };
  };
  const change = (name: string, columns: string) =>
    database().run((sql) => sql`update sandboxes set ${sql.unsafe(columns)} where name = ${name}`);

  it("a sandbox is claimed for one host, moved by one process, and its commands are lost then", async () => {
    const { at, name, row } = await scene();
    const key = newKey();
    await database().sql`
      insert into sandbox_commands (key, agent, room_id, number, boot, command, requesters, is_background)
      values (${key}, ${at.agent}, ${at.roomId}, 1, 'boot', 'sleep 3000', '{}', false)`;
    const moves = await Promise.all([1, 2].map(() => placements().move(name, row.host, "three")));
    expect(moves.filter((moved) => moved)).toMatchObject([{ host: "three", isAwake: false, isBare: false }]);
    expect(await database().sql`select outcome from sandbox_commands where key = ${key}`).toEqual([
      { outcome: { reason: "lost" } },
    ]);
    expect((await table().hosts()).get(name)).toBe("three");
  });

  it("one that is too large is claimed once, and its commands are told why", async () => {
    const { at, name } = await scene();
    const key = newKey();
    await database().sql`
      insert into sandbox_commands (key, agent, room_id, number, boot, command, requesters, is_background)
      values (${key}, ${at.agent}, ${at.roomId}, 1, 'boot', 'cat /dev/zero >x', '{}', false)`;
    expect((await Promise.all([1, 2].map(() => table().claimGreedy(name)))).sort()).toEqual([false, true]);
    expect(await table().use(at)).toBe("stopping");
    expect(await database().sql`select outcome from sandbox_commands where key = ${key}`).toEqual([
      { outcome: { reason: "disk" } },
    ]);
  });

  it("a backup is made where something may have changed, and restored once", async () => {
    const { name, row } = await scene();
    const claim = async () => (await placements().claimBackups(900)).filter((one) => one.name === name);
    expect(await claim()).toEqual([]);
    await change(name, "created_at = now() - interval '1 hour', used_at = now() - interval '1 minute'");
    expect(await claim()).toHaveLength(1);
    expect(await claim()).toEqual([]);
    await placements().markBackedUp(name);
    expect(await placements().beginBackup(name)).toBe(false);
    await table().touch(name);
    expect(await placements().beginBackup(name)).toBe(true);

    expect(await placements().claimRestore(name)).toBe("done");
    expect(await placements().move(name, row.host, "three")).toMatchObject({ isBare: true });
    expect(await placements().beginBackup(name)).toBe(false);
    expect(await placements().claimRestore(name)).toBe("ours");
    expect(await placements().claimRestore(name)).toBe("taken");
    await placements().endRestore(name, false);
    expect(await placements().claimRestore(name)).toBe("ours");
    await change(name, "restoring_since = now() - interval '1 hour'");
    expect(await placements().claimRestore(name)).toBe("ours");
    await placements().endRestore(name, true);
    expect(await placements().claimRestore(name)).toBe("done");
  });

  it("strays are kept for a day from when they were found first", async () => {
    const [host, name] = [newKey(), newKey()];
    await placements().addStray({ host, name });
    expect(await placements().oldStrays(host)).toEqual([]);
    await database().run((sql) => sql`update stray_sandboxes set found_at = now() - interval '25 hours'`);
    await placements().addStray({ host, name });
    expect(await placements().oldStrays(host)).toEqual([name]);
    expect(await placements().forgetStray({ host, name })).toBe(true);
    expect(await placements().forgetStray({ host, name })).toBe(false);
  });
});
