import { describe, expect, it } from "vitest";
import { Commands } from "../../../src/engine/control/commands.ts";
import { type CommandServices, defineCommand, noInput } from "../../../src/engine/control/define-command.ts";
import { Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { makeAgent } from "../../support/agents.ts";

const status = defineCommand({
  command: "status",
  description: "Says how it is.",
  where: "room",
  level: "chat",
  input: noInput,
  run: async (_, { agents }) => `${agents.map(({ name }) => name).join(", ")}: fine`,
});
const services = {
  prefix: "!",
  rights: { of: async () => "admin" },
  client: { botUserId: "@bot:test" },
  events: { isFollowed: async () => false },
  toolbox: new Toolbox([]),
  openProgress: () => ({ show() {}, end: async () => undefined }),
} as unknown as CommandServices;
const commands = new Commands([status], services);

/** Text of the answer; undefined: it is no command. */
async function answerTo(body: string, names = ["helper", "clara"]): Promise<string | undefined> {
  const given = {
    event: { roomId: "!room:test", eventId: "$event", sender: "@ann:test", editedAt: null },
    message: { body },
    room: { kind: "chat", hasBotJoined: true },
    agentsHere: names.map((name) => makeAgent(name)),
  };
  const said = await commands.handle(given as unknown as Parameters<Commands["handle"]>[0]);
  return said && String((said.outbox?.[0]?.content as { body?: string } | undefined)?.body);
}

describe("what is a command", () => {
  it.each(["!status", "! status", "!  status", "!", "!!", "! ", "!!!"])("%j", (body) =>
    expect(commands.isOne(body)).toBe(true),
  );

  it.each(["", "status", "!? really", "!\nstatus", "!1", "hello!", "!!! look at this"])("not %j", (body) =>
    expect(commands.isOne(body)).toBe(false),
  );
});

describe("an answer", () => {
  it("to a mistake shows characters that deceive the eye by their codes", async () => {
    expect(await answerTo("!stat\u202Eus", ["helper"])).toMatch(/‹U\+202E›/);
    expect(await answerTo("!stat\u202Eus", ["helper"])).not.toContain("\u202E");
  });

  it("says that a command is missing behind the prefix alone", async () => {
    for (const body of ["!", "!!", " ! ".trim()])
      expect(await answerTo(body)).toBe("Write a command behind !: `!help` lists them.");
  });

  it("is given with a space behind the prefix, and whatever the case of the agent's name", async () => {
    expect(await answerTo("! status")).toBe("helper, clara: fine");
    expect(await answerTo("!Clara status")).toBe("clara: fine");
  });

  it("says that no such agent is here, rather than no such command", async () => {
    expect(await answerTo("!nobody status")).toBe(
      "There is no agent `nobody` here, and no command of this name. Agents here: helper, clara.",
    );
    expect(await answerTo("!claar status")).toContain("Did you mean `!clara status`?");
    expect(await answerTo("!nobody status", [])).toContain("No agent is in this room.");
  });

  it("says of a mistyped command that there is none", async () => {
    expect(await answerTo("!statsu")).toContain("There is no command `!statsu`. Did you mean `!status`?");
    expect(await answerTo("!statsu status")).toContain("There is no command `!statsu`");
  });
});
