import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { History } from "../../../src/domain/tables/history.ts";
import type { CommandRow } from "../../../src/domain/tables/sandbox-commands.ts";
import { commands as listing } from "../../../src/edges/commands/sandbox.ts";
import { commands as stopping } from "../../../src/edges/commands/stop.ts";
import type { CommandContext } from "../../../src/engine/control/define-command.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, newUser, setMember, settleEvent, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  let [ann, ben]: UserId[] = [];
  let roomId: RoomId;
  let status: object;
  let rows: Partial<CommandRow>[];
  let isAtWork: boolean;
  beforeEach(async () => {
    [agent, ann, ben, roomId, rows, isAtWork] = [
      await addAgent(database()),
      newUser(),
      newUser(),
      newRoom(),
      [],
      false,
    ];
    for (const user of [agent.userId, ann as UserId]) await setMember(database(), roomId, user, "join");
    status = { isRunning: true, isThere: true, isAway: false, usedAt: new Date() };
  });

  const run = async (command: string): Promise<string> => {
    const context = {
      agents: [{ ...agent, displayName: "Helper" }],
      clock: systemClock,
      event: { roomId, sender: ann },
      history: new History(database()),
      level: "operate",
      prefix: "!",
      runner: { stopFor: async () => isAtWork },
      sandboxCommands: { underWay: async () => rows, endDeserted: async () => {} },
      sandboxes: {
        settings: { idleSeconds: 900, limits: { memoryMegabytes: 512, cpus: 1 } },
        status: async () => status,
        seen: { find: async () => ({ isAwake: true }) },
      },
    };
    const found = [...listing, ...stopping].find((one) => one.command === command);
    return (await found?.run({}, context as unknown as CommandContext)) as string;
  };
  const row = (fields: Partial<CommandRow>): Partial<CommandRow> => ({
    number: 1,
    command: "echo KIWI",
    isBackground: true,
    outcome: null,
    sources: [roomId],
    place: Number.MAX_SAFE_INTEGER,
    ...fields,
  });
  const hidden = "- 1: a command that not everybody here may read, in the background; `!stop 1` ends it";

  describe("the list of what runs on the computer", () => {
    it("shows a command line to those who may read all that it was made from, and to nobody else", async () => {
      const secret = newRoom();
      await setMember(database(), secret, ann as UserId, "join");
      rows = [row({ sources: [secret] })];
      expect(await run("sandbox")).toContain("- 1: `echo KIWI`, in the background");
      await setMember(database(), roomId, ben as UserId, "join");
      const shown = await run("sandbox");
      expect(shown).toContain(hidden);
      expect(shown).not.toContain("KIWI");
    });

    it("shows newcomers no older command lines where the history is closed to them", async () => {
      const content = { history_visibility: "joined" };
      const closing = { type: "m.room.history_visibility", content, sender: ann as UserId };
      await settleEvent(database(), { roomId }, { state: closing });
      const { position } = await storeEvent(database(), { roomId });
      rows = [row({ place: position })];
      expect(await run("sandbox")).toContain("`echo KIWI`");
      await setMember(database(), roomId, ben as UserId, "join");
      expect(await run("sandbox")).toContain(hidden);
      rows = [row({ place: (await storeEvent(database(), { roomId })).position })];
      expect(await run("sandbox")).toContain("`echo KIWI`");
    });

    it("says that a command was redacted, and that a computer was removed", async () => {
      rows = [row({ command: "" })];
      expect(await run("sandbox")).toContain("- 1: a command that was redacted, in the background");
      status = { ...status, isRunning: false };
      expect(await run("sandbox")).toContain("its files are kept");
      status = { ...status, isThere: false };
      expect(await run("sandbox")).toBe("There is no computer here now. `!run` makes one.");
    });
  });

  describe("whoever stops an agent", () => {
    it("is told what goes on on its computer, and how it ends", async () => {
      rows = [row({ number: 3, sources: [HOME] }), row({ number: 4, isBackground: false })];
      expect(await run("stop")).toBe(
        "Helper is not at work here. Commands 3, 4 go on on its computer: `!stop 3` ends one, `!sandbox` lists what runs.",
      );
      isAtWork = true;
      expect(await run("stop")).toBe(
        "Helper was stopped. Command 3 goes on on its computer: `!stop 3` ends it, `!sandbox` lists what runs.",
      );
      rows = [];
      expect(await run("stop")).toBe("Helper was stopped.");
    });
  });
});
