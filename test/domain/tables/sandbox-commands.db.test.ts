import { describe, expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { SandboxCommandTable } from "../../../src/domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  describe("a command", () => {
    it("has the sources of who gives it and of its sandbox, until its end, and the place of its operation", async () => {
      const { name: agent } = await addAgent(database());
      const [roomId, earlier, own, later, key] = [newRoom(), newRoom(), newRoom(), newRoom(), newKey()];
      const at = { agent, roomId };
      const [sandboxes, commands] = [new SandboxTable(database()), new SandboxCommandTable(database())];
      await sandboxes.claim(at, newKey(), "default");
      await sandboxes.hold(at, [earlier]);
      const operations = new Operations(database());
      await operations.begin({ ...call({ key }), state: "running" }, at);
      await storeEvent(database(), { roomId });
      const requesters: UserId[] = [];
      const draft = { ...at, key, boot: "boot", command: "ls", requesters, isBackground: false };
      const row = await commands.begin({ ...draft, sources: [own] });
      expect([...row.sources].sort()).toEqual([earlier, own].sort());
      expect(row.place).toBe((await operations.withKey(key))?.place);
      await sandboxes.hold(at, [later]);
      await commands.finish(key, { reason: "exit", code: 0 });
      const sources: readonly RoomId[] = (await commands.find(key))?.sources ?? [];
      expect([...sources].sort()).toEqual([earlier, own, later].sort());
      // Nobody knows when it began: to newcomers it is closed.
      expect((await commands.begin({ ...draft, key: newKey(), sources: [] })).place).toBe(0);
    });
  });
});
