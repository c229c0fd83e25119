import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { newKey, newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  let directory: AgentDirectory;
  let name: AgentName;
  beforeEach(async () => {
    name = newKey().replace(" ", "") as AgentName;
    directory = new AgentDirectory(database(), systemClock, silentLog);
    const settings = parseAgentSettings({ displayName: "Mia" }, "test");
    await directory.seed({ name, owner: newUser(), persona: undefined, settings }, "test");
  });
  const agent = async (): Promise<Agent> => {
    const found = await directory.find(name);
    if (!found) throw new Error(`${name} is not there`);
    return found;
  };

  it("an agent that nobody has described has a persona with traits, capabilities and guidelines", async () => {
    const persona = (await directory.persona(await agent())) ?? "";
    expect(persona.split("\n").filter((line) => line.startsWith("#"))).toEqual([
      "# Mia",
      "## Traits",
      "## Capabilities",
      "## Guidelines",
    ]);
    for (const part of persona.split("\n## ").slice(1)) expect(part.match(/^- /gm)?.length).toBeGreaterThanOrEqual(4);
    for (const guideline of ["Look before you say", "concrete example", "Ask when", "what people prefer"])
      expect(persona).toContain(guideline);
  });

  describe("a timer that the agent has set itself", () => {
    const shown = async (by = directory) => (await by.find(name))?.wakeUpTimerSeconds;
    const stored = async () => (await directory.table.find(name))?.wakeUpTimerSeconds;
    const write = (text: string) =>
      new Files(database()).write({
        share: "agents",
        path: `/${name}/agent.json`,
        contentType: "text/plain",
        owner: "",
        text,
      });
    const anotherProcess = () => new AgentDirectory(database(), systemClock, silentLog);
    beforeEach(async () => {
      expect(await shown()).toBe(3600);
      await eventually(async () => (await directory.table.find(name))?.timerVersion === 1, {
        what: "the file's timer",
      });
    });

    it("counts until another one stands in the file, which counts at once", async () => {
      await directory.table.setTimer(name, 120);
      expect(await shown()).toBe(120);
      await write('{"wakeUpTimerSeconds":600}');
      expect(await shown()).toBe(600);
      await eventually(async () => (await stored()) === 600, { what: "the timer" });
      expect(await shown()).toBe(600);
    });

    it("stays when a file that was written before is read only now, in whichever process", async () => {
      await write('{"wakeUpTimerSeconds":600}');
      await directory.table.setTimer(name, 120);
      for (const process of [directory, anotherProcess()]) expect(await shown(process)).toBe(120);
    });

    it("stays when something else is changed in the file, or the file is refused", async () => {
      await directory.table.setTimer(name, 120);
      for (const text of ['{"displayName":"Mara"}', '{"displayName":5}', '{"displayName":"Mia"}']) {
        await write(text);
        for (const process of [directory, anotherProcess()]) expect(await shown(process)).toBe(120);
      }
      await eventually(async () => (await directory.table.find(name))?.timerVersion === 4, { what: "the last file" });
      expect(await stored()).toBe(120);
    });

    it("ends when the bridge starts again", async () => {
      await directory.table.setTimer(name, 120);
      await anotherProcess().restart();
      expect(await shown()).toBe(3600);
      await eventually(async () => (await stored()) === 3600, { what: "the file's timer" });
    });
  });
});
