import { beforeEach, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
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
    for (const guideline of ["Look before you say", "concrete example", "Ask when", "what people prefer"])
      expect(persona).toContain(guideline);
  });

  it("a timer that is another in the file counts at once, and one that the agent set until then", async () => {
    const kept = (seconds: number) =>
      eventually(async () => (await directory.table.find(name))?.wakeUpTimerSeconds === seconds, { what: "the timer" });
    expect((await agent()).wakeUpTimerSeconds).toBe(3600);
    await kept(3600);
    await directory.table.setTimer(name, 120);
    expect((await agent()).wakeUpTimerSeconds).toBe(120);
    await directory.writeFields(await agent(), { wakeUpTimerSeconds: 600 });
    expect((await agent()).wakeUpTimerSeconds).toBe(600);
    await kept(600);
  });
});
