import { describe, expect, it } from "vitest";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom } from "../../support/rows.ts";

onEachDatabase((database) => {
  const table = () => new SandboxTable(database());
  const idle = async () => (await table().claimIdle(60, ["default"])).map(({ name }) => name);
  /** A sandbox that was used an hour ago, and the command in it that has not ended. */
  const scene = async (isBackground: boolean) => {
    const [{ name: agent }, roomId, name, key] = [await addAgent(database()), newRoom(), newKey(), newKey()];
    await database().sql`
      insert into sandboxes (agent, room_id, name, is_awake, used_at)
      values (${agent}, ${roomId}, ${name}, true, now() - interval '1 hour')`;
    await database().sql`
      insert into sandbox_commands (key, agent, room_id, number, boot, command, requesters, is_background)
      values (${key}, ${agent}, ${roomId}, 1, 'boot', 'sleep 3000', '{}', ${isBackground})`;
    return { key, name };
  };

  describe("a sandbox in which a command has not ended", () => {
    it("is not idle, though its process was away for long, until the command has ended", async () => {
      const { key, name } = await scene(false);
      expect(await idle()).not.toContain(name);
      expect(await table().claimLongestIdle([name], { quiet: 60, busy: 60 })).toBeUndefined();
      await database().sql`update sandbox_commands set outcome = '{"reason": "exit"}' where key = ${key}`;
      expect(await idle()).toContain(name);
    });

    it("is idle where the command runs in the background, unless it was seen to be busy", async () => {
      const { name } = await scene(true);
      expect((await table().findResting(60)).filter(({ hasBackground }) => hasBackground).length).toBeGreaterThan(0);
      await table().markBusy(name);
      expect(await idle()).not.toContain(name);
      expect(await table().claimLongestIdle([name], { quiet: 60, busy: 7_200 })).toBeUndefined();
      await database().sql`update sandboxes set busy_at = used_at where name = ${name}`;
      expect(await idle()).toContain(name);
    });

    it("gives its place to others later than one that is quiet, and before all wait", async () => {
      const [busy, quiet] = [await scene(true), await scene(false)];
      await database().sql`update sandbox_commands set outcome = '{"reason": "exit"}' where key = ${quiet.key}`;
      const names = [busy.name, quiet.name];
      expect(await table().claimLongestIdle(names, { quiet: 60, busy: 60 })).toMatchObject({ name: quiet.name });
      expect(await table().claimLongestIdle(names, { quiet: 60, busy: 60 })).toMatchObject({ name: busy.name });
    });
  });
});
