import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ModelRequest, userText } from "../support/scripted-model.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const turns = 50;

/** Memories that the model is shown of itself. */
const recalledIn = (request: ModelRequest): string =>
  /<ragResults>[\s\S]*<\/ragResults>/.exec(userText(request))?.[0] ?? "";

describe.each(["embedded", "postgres"] as const)("an agent that remembers, on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database, agents: { helper: { approxContextCharsMax: 16_000 } } });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  it("knows what it was told fifty turns ago, also when it was killed since", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on(/What is my API key/, (request) =>
      answer(request, `It is ${/API key is (\w+)/.exec(recalledIn(request))?.[1]}.`),
    );
    stage.model.on(/./, (request) => answer(request, "Noted."));
    await ann.say(room, "My API key is k12345, please keep it.");
    const weather = (n: number) => `The weather report number ${n} speaks of rain. ${"It rains. ".repeat(20)}`;
    await Promise.all(Array.from({ length: turns }, (_, n) => ann.say(room, weather(n))));
    await ann.waitForMessage(room, ({ body }) => body === "Noted.");
    await stage.bridge.kill();
    await stage.bridge.start();
    await ann.say(room, "What is my API key?");
    const answered = await ann.waitForMessage(room, ({ body }) => body.startsWith("It is "));
    expect(answered.body).toBe("It is k12345.");
  }, 180_000);

  it("tells a person what it remembers as a list", async () => {
    const admin = await stage.user("admin");
    const room = await stage.directRoom(admin);
    await admin.say(room, "The spare key hangs behind the harpsichord.");
    await admin.waitForMessage(room, ({ body }) => body === "Noted.");
    for (const line of ["!recall harpsichord", "!memories harpsichord --limit 1"]) {
      const asked = await admin.say(room, line);
      const { body } = await admin.waitForMessage(room, ({ content }) => content["org.clevernet.command"] === asked);
      expect(body).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d, @admin:\S+: The spare key hangs behind the harpsichord\./);
      expect(body).not.toContain("ragResult");
    }
  });
});
