import { afterAll, beforeAll, expect, it } from "vitest";
import { type Conversation, secret } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";

describeSandbox("the watch on disks", () => {
  // Its statement is held on both databases by a test of the table.
  onEachDatabase((database, kind) => {
    if (kind === "embedded") return void it.skip("is held on PostgreSQL alone", () => {});
    let agent: AgentRow;
    let computers: Computers;
    beforeAll(async () => {
      agent = await addAgent(database());
      // Whatever others write to this disk meanwhile, workspaces are measured in every round.
      const disk = { freeMegabytes: 1_000_000_000, freeFiles: 0, workspaceMegabytes: 64, workspaceFiles: 5_000 };
      computers = new Computers(database(), { homeserver: secret(8), settings: { disk } });
    });
    afterAll(async () => {
      await computers.remove();
    });

    it("stops who writes too much, however it is hidden, says so, and lets it be cleared", async () => {
      const room = (): Conversation => ({ agent: agent.name, roomId: newRoom() });
      const [modest, large, many] = [room(), room(), room()];
      await Promise.all([modest, large, many].map((at) => computers.out(at, "true")));
      await computers.diskWatch.round();
      const hidden = "mkdir x; head -c 100m /dev/zero >x/y; chmod 0 x; echo done >/tmp/done; sleep 1000";
      const running = computers.run(large, hidden, { seconds: 300 });
      await computers.out(many, "seq 6000 | xargs touch");
      await expect.poll(() => computers.out(large, "cat /tmp/done"), { timeout: 60_000 }).toBe("done\n");
      await computers.diskWatch.round();
      expect((await running).outcome).toMatchObject({ reason: "disk" });
      const states = await Promise.all([modest, large, many].map((at) => computers.sandboxes.status(at)));
      expect(states.map((state) => state?.isRunning)).toEqual([true, false, false]);
      expect(computers.said).toHaveLength(2);
      const said = computers.said.join("\n");
      expect(said).toMatch(/its files take 1\d\d MB in \d+ files, and may take 64 MB in 5000 files/);
      expect(said).toMatch(/its files take \d+ MB in 60\d\d files/);
      await computers.out(large, "chmod 700 x");
      await computers.diskWatch.round();
      expect(await computers.out(large, "rm -r x; echo cleared")).toBe("cleared\n");
    });
  });
});
