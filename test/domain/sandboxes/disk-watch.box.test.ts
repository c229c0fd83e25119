import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Conversation, secret } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";

// On a busy machine a container takes its time.
vi.setConfig({ testTimeout: 180_000 });

describeSandbox("the watch on disks", () => {
  onEachDatabase((database, kind) => {
    if (kind === "embedded")
      return void it.skip("is held on PostgreSQL alone: containers take long, and its statement is held on both by a test of the table", () => {});
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
      const [modest, greedy]: Conversation[] = [1, 2].map(() => ({ agent: agent.name, roomId: newRoom() }));
      if (!modest || !greedy) throw new Error("there are two rooms");
      await Promise.all([modest, greedy].map((at) => computers.out(at, "true")));
      const hidden = "mkdir x; head -c 70m /dev/zero >x/y; chmod 0 x; echo done; sleep 1000";
      const written = Promise.withResolvers<void>();
      const onOutput = () => written.resolve();
      const running = computers.run(greedy, hidden, { seconds: 300 }, { onOutput });
      await written.promise;
      await computers.diskWatch.round();
      expect((await running).outcome).toMatchObject({ reason: "disk" });
      const states = await Promise.all([modest, greedy].map((at) => computers.sandboxes.status(at)));
      expect(states.map((state) => state?.isRunning)).toEqual([true, false]);
      expect(computers.said).toEqual([
        expect.stringMatching(/its files take 7\d MB in \d+ files, and may take 64 MB in 5000 files/),
      ]);
      expect(await computers.out(greedy, "chmod 700 x; rm -r x; echo cleared")).toBe("cleared\n");
    });
  });
});
