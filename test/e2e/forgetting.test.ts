import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, newMessages, toolName } from "../support/scripted-model.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const promptOf = ({ body }: ModelRequest): string => JSON.stringify(body.messages);

describe("forgetting", () => {
  let stage: Stage;
  let [ann, bob, carl]: TestUser[] = [];
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: { mode: "delete" } },
      permissions: { "@*:clevernet.test": "operate" },
    });
    await stage.bridge.start();
    stage.model.on(/Tell everybody: (.*)/, (request) => {
      if (callsOf(request).length > 0) return answer(request, "Kept.");
      const [, content = ""] = /Tell everybody: (.*)/.exec(newMessages(request).at(-1)?.body ?? "") ?? [];
      return { call: toolName(request, "Remember"), arguments: { content, shareable: true } };
    });
    stage.model.on(/What is the code of the quokka/, (request) =>
      answer(request, `Noted: ${/the code of the quokka is \w+/.exec(promptOf(request))?.[0]} as all should know`),
    );
    stage.model.on(/./, (request) => answer(request, "Noted."));
    [ann, bob, carl] = await Promise.all(["ann", "bob", "carl"].map((name) => stage.user(name)));
  });
  afterAll(() => stage.strike());

  /** Tables in which a text stands. */
  const whereIs = async (text: string): Promise<string[]> => {
    const tables = await stage.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    const found = tables.map(async ({ name }) => {
      const rows = await stage.query(`select 1 from "${name}" t where to_jsonb(t)::text ilike '%${text}%' limit 1`);
      return rows.length > 0 ? [name] : [];
    });
    return (await Promise.all(found)).flat();
  };
  const gone = (text: string) =>
    eventually(async () => expect(await whereIs(text)).toEqual([]), {
      what: `"${text}" to be nowhere`,
      within: 20_000,
    });
  const command = async (user: TestUser, room: string, line: string): Promise<string> => {
    const asked = await user.say(room, line);
    const { body } = await user.waitForMessage(room, ({ content }) => content["org.clevernet.command"] === asked);
    return body;
  };
  const talk = async (user: TestUser, room: string, text: string, answered = /^Noted/): Promise<string> => {
    const before = user.heard(room).filter(({ body }) => answered.test(body)).length;
    const id = await user.mention(room, stage.agentId(), text);
    await eventually(() => user.heard(room).filter(({ body }) => answered.test(body)).length > before, {
      what: "an answer",
    });
    return id;
  };

  it("of a message reaches the rooms in which it was recalled over every wall", async () => {
    const [room, other] = [
      await stage.directRoom(ann as TestUser),
      await stage.room(carl as TestUser, [bob as TestUser], ["helper"]),
    ];
    const told = await talk(
      ann as TestUser,
      room,
      "Tell everybody: the code of the quokka is quokka77 as all should know",
      /^Kept/,
    );
    await talk(carl as TestUser, other, "What is the code of the quokka?");
    expect((carl as TestUser).heard(other).at(-1)?.body).toContain("quokka77");
    await (ann as TestUser).redact(room, told);
    await gone("quokka77");
    await talk(carl as TestUser, other, "And now?");
    expect(promptOf(stage.model.requests.at(-1) as ModelRequest)).not.toContain("quokka77");
  });

  it("of all that somebody has said takes what they had kept by command", async () => {
    const user = ann as TestUser;
    const room = await stage.directRoom(user);
    await command(user, room, "!remember golf77");
    await command(user, room, "!fact shed golf77");
    await command(user, room, "!now golf77 next");
    await command(user, room, "!log THOUGHT golf77");
    await talk(user, room, "hello");
    expect(promptOf(stage.model.requests.at(-1) as ModelRequest)).toContain("golf77");
    expect(await command(user, room, "!forget all")).toMatch(/^Forgotten of this room: \d+ messages, \d+ memories\./);
    await gone("golf77");
    expect(await command(user, room, "!fact shed blue")).toMatch(/facts\.json is written\.$/);
  });

  it("of words takes knowledge and files with them, and names files of people that have them still", async () => {
    const user = ann as TestUser;
    const room = await stage.directRoom(user);
    await command(user, room, "!knowledge add --title till The till opens with lima77.");
    await command(user, room, "!write plan.md The till opens with lima77.");
    await command(user, room, "!index plan.md");
    expect(await command(user, room, "!knowledge search till opens")).toContain("lima77");
    const forgotten = await command(user, room, "!forget lima77");
    expect(forgotten).toMatch(/^Forgotten of this room: .*, 2 entries of knowledge\./);
    expect(forgotten).toContain(`rooms:/${room}/plan.md`);
    expect(await command(user, room, "!knowledge search till opens")).toMatch(/^There is no knowledge/);
    expect(await command(user, room, "!rm plan.md")).toContain("plan.md");
    await stage.query("delete from file_versions where path like '%/plan.md'");
    await gone("lima77");
  });

  it("of words takes them wherever they stand, and does not show them to the agent again", async () => {
    const user = ann as TestUser;
    const room = await stage.directRoom(user);
    await talk(user, room, "The link is https://example.org/a/fox77 for you");
    await command(user, room, "!memories fox77");
    expect(await command(user, room, "!forget FOX77")).toMatch(/^Forgotten of this room: 2 messages\./);
    await talk(user, room, "And now?");
    const prompt = promptOf(stage.model.requests.at(-1) as ModelRequest);
    expect(prompt).not.toMatch(/fox77/i);
    expect(prompt).toContain("!forget █████");
    await gone("fox77");
  });
});
