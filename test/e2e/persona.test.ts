import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, say } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const persona = "agents:/helper/persona.md";

describe("persona and prompt of an agent, in a room with it", () => {
  let stage: Stage;
  let admin: TestUser;
  let olga: TestUser;
  let pat: TestUser;
  let ben: TestUser;
  let kim: TestUser;
  let control: string;
  let room: string;
  beforeAll(async () => {
    const server = "clevernet.test";
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: { owner: `@olga:${server}` } },
      permissions: {
        [`@admin:${server}`]: "admin",
        [`@olga:${server}`]: "operate",
        [`@pat:${server}`]: "operate",
        [`@ben:${server}`]: "use",
        [`@kim:${server}`]: "chat",
      },
    });
    stage.model.onEvery((request) => say(request, room, "pong", { final: true }));
    await stage.bridge.start();
    [admin, olga, pat, ben, kim] = [
      await stage.user("admin"),
      await stage.user("olga"),
      await stage.user("pat"),
      await stage.user("ben"),
      await stage.user("kim"),
    ];
    await admin.createDirectRoom(`@clevernet:${server}`);
    const invited = () => admin.client.getRooms().find(({ name }) => name === "Clevernet: control room");
    await eventually(() => invited() !== undefined, { what: "the control room" });
    control = String(invited()?.roomId);
    await admin.join(control);
    room = await stage.room(olga, [pat, ben, kim], ["helper"]);
  }, 120_000);
  afterAll(() => stage.strike());

  const command = async (user: TestUser, line: string, where = room): Promise<string> => {
    const id = await user.say(where, line);
    const isReply = ({ content }: Message) => content["org.clevernet.command"] === id;
    return (await user.waitForMessage(where, isReply)).body;
  };
  /** Makes the agent's next turn; returns its system message. */
  const systemOfNextTurn = async (): Promise<string> => {
    const before = stage.model.requests.length;
    await olga.mention(room, stage.agentId(), "ping");
    await eventually(() => stage.model.requests.length > before, { what: "a turn" });
    return (stage.model.requests.at(-1) as ModelRequest).body.messages[0]?.content ?? "";
  };
  const changes = async () =>
    (await stage.query<{ subject: string; actor: string }>("select subject, actor from audit order by id")).map(
      ({ subject, actor }) => `${actor.slice(1).split(":")[0]}: ${subject}`,
    );
  beforeEach(() => stage.query("delete from audit"));

  it("are shown to whoever may use it", async () => {
    const shown = await command(ben, "!persona");
    expect(shown).toMatch(/^```markdown\n# helper\n/);
    for (const title of ["## Traits", "## Capabilities", "## Guidelines"]) expect(shown).toContain(title);
    expect(shown).toContain("`!persona TEXT`");
    expect(await command(ben, "!prompt")).toMatch(/^```\nYou are a helpful assistant\.\n```/);
    expect(await command(kim, "!persona")).toContain("you need the right to use");
  });

  it("are changed by its owner, are seen by its next turn, and the persona can be brought back", async () => {
    expect(await command(olga, "!persona # Sea\n\nYou are called Nemo.\n- You dive.")).toBe(
      `helper has another persona from its next turn on: 39 characters. \`!restore ${persona}\` brings back the one before.`,
    );
    expect(await command(olga, "!persona")).toContain("You are called Nemo.\n- You dive.");
    expect(await command(olga, "!prompt Answer in rhymes.")).toBe(
      "agent helper: systemPrompt: `You are a helpful assistant.` → `Answer in rhymes.`",
    );
    const system = await systemOfNextTurn();
    expect(system).toContain("# Sea\n\nYou are called Nemo.\n- You dive.");
    expect(system).toContain("Answer in rhymes.");
    expect(await command(olga, "!prompt")).toContain("Answer in rhymes.");
    expect(await changes()).toEqual(["olga: agent helper: persona", "olga: agent helper: systemPrompt"]);
    expect(await command(olga, `!stat ${persona}`)).toContain("version: 2");
    await command(olga, `!restore ${persona}`);
    expect(await systemOfNextTurn()).toContain("## Guidelines");
  });

  it("are changed by admins, too, and by nobody else; who is refused leaves no trace in the audit", async () => {
    for (const name of ["persona", "prompt"]) {
      expect(await command(ben, `!${name} You are mine.`)).toContain("you need the right to operate; you have: use");
      expect(await command(pat, `!${name} You are mine.`)).toContain("only its owner and admins write there");
    }
    expect(await changes()).toEqual([]);
    await olga.invite(room, admin.id);
    await admin.join(room);
    expect(await command(admin, "!prompt Answer in prose.")).toContain("`Answer in prose.`");
    expect(await changes()).toEqual(["admin: agent helper: systemPrompt"]);
  });

  it("are the defaults again after `null`", async () => {
    await command(olga, "!prompt Answer in rhymes.");
    expect(await command(olga, "!prompt null")).toBe("agent helper: systemPrompt: `Answer in rhymes.` → `the default`");
    expect(await command(olga, "!prompt")).toContain("You are a helpful assistant.");
    await command(olga, "!persona You are called Nemo.");
    await command(olga, "!persona null");
    expect(await command(olga, "!persona")).toContain("## Guidelines");
  });

  it("are refused where they are longer than what is sure to be shown, with both figures", async () => {
    expect(await command(olga, `!persona ${"x".repeat(12_001)}`)).toBe(
      "persona: found 12001 characters, expected at most 12000: the model might not be shown more. Shorten the text, or raise approxContextCharsMax, which is 50000.",
    );
    expect(await command(olga, `!prompt ${"x".repeat(16_001)}`)).toContain("expected at most 16000");
    expect(await command(admin, `!agent create long --persona "${"x".repeat(12_001)}"`, control)).toContain(
      "persona: found 12001 characters",
    );
    expect(await command(admin, `!agent set helper systemPrompt ${"x".repeat(16_001)}`, control)).toContain(
      "systemPrompt: found 16001 characters",
    );
    expect(await changes()).toEqual([]);
    await command(olga, `!persona ${"x".repeat(12_000)}`);
    expect(await systemOfNextTurn()).toContain("x".repeat(12_000));
  });

  it("loses nothing where others change the agent at the same moment", async () => {
    const [wider, rhymes] = await Promise.all([
      command(admin, "!agent set helper windowLines 33", control),
      command(olga, "!prompt Answer in rhymes."),
      command(admin, "!agent set helper windowChars 3333", control),
      command(admin, "!agent set helper timeZone Europe/Berlin", control),
    ]);
    expect(wider).toContain("`33`");
    expect(rhymes).toContain("`Answer in rhymes.`");
    const [file] = await stage.query<{ text: string }>(
      "select text_content as text from files where path = '/helper/agent.json'",
    );
    expect(JSON.parse(file?.text ?? "")).toMatchObject({
      windowLines: 33,
      windowChars: 3333,
      timeZone: "Europe/Berlin",
      systemPrompt: "Answer in rhymes.",
    });
  });

  it("put back what is shipped with null in the control room", async () => {
    expect(await command(admin, "!agent set helper persona null", control)).toContain("## Guidelines");
    expect(await command(admin, "!agent set helper systemPrompt null", control)).toContain("`the default`");
    expect(await command(ben, "!prompt")).toContain("You are a helpful assistant.");
  });
});
