import { execFileSync } from "node:child_process";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { saidIn } from "../support/faults.ts";
import { isCard, obey } from "../support/obedient.ts";
import { say } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const main = join(import.meta.dirname, "../../src/main.ts");

/** A backup is made while an agent is at work; the agent goes on; then the backup comes back. */
describe.each([
  ["a copy of its folder", "embedded"],
  ["a copy on its server", "postgres"],
  ["a dump", "embedded"],
] as const)("a bridge whose database comes back in the middle of its work from %s, %s", (how, database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database, permissions: { "@*:clevernet.test": "admin" } });
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  const command = (...args: readonly string[]) =>
    execFileSync(process.execPath, [main, ...args, "--config", join(stage.homeserver.dir, "config.yaml")]);

  const backUp = async (): Promise<() => Promise<void>> => {
    if (how !== "a dump") return stage.copyDatabase();
    const file = join(stage.homeserver.dir, "backup.dump");
    command("dump", file);
    return async () => {
      await rename(join(stage.homeserver.dir, "data"), join(stage.homeserver.dir, "data.damaged"));
      command("restore", file);
    };
  };

  it("says nothing again of what it had answered, and gives no operation the number of another", async () => {
    obey(stage.model);
    stage.model
      .on("long work", { hangs: true }, { times: 1 })
      .on("long work", (request) => say(request, room, "done", { final: true }), { times: 1 })
      // Another life, another way: under no key of before.
      .on("long work", (request) => say(request, room, "on it"), { times: 1 })
      .on("long work", (request) => say(request, room, "done again", { final: true }))
      .onEvery(answerEach);
    await stage.bridge.start();
    const room = await stage.directRoom(ann);
    await ann.say(room, "early");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("early"));
    const calls = stage.model.requests.length;
    await ann.say(room, "long work");
    await expect.poll(() => stage.model.requests.length).toBe(calls + 1);
    await stage.bridge.kill();
    const bringBack = await backUp();

    await stage.bridge.start();
    await ann.waitForMessage(room, ({ body }) => body === "done");
    await ann.mention(room, stage.agentId(), `do 1 FS_Delete {"path":"rooms:/${room}/none.md"}`);
    const card = await ann.waitForMessage(room, isCard);
    await stage.bridge.stop();
    await bringBack();

    await stage.bridge.start();
    // A card is no answer: what was asked for is asked for again.
    const other = await ann.waitForMessage(room, (message) => isCard(message) && message.id !== card.id, {
      within: 60_000,
    });
    expect(other.content["org.clevernet.operation"]).not.toBe(card.content["org.clevernet.operation"]);
    const said = (await saidIn(ann, room)).filter((body) => /^(long work|on it|done|done again)$/.test(body));
    expect(said).toEqual(["long work", "done"]);
    const [turn] = await turnsOf(room);
    expect(turn).toMatchObject({ state: "cancelled" });
  }, 240_000);

  const turnsOf = async (room: string) => {
    await stage.bridge.stop();
    return stage.query<{ state: string; error: string }>(
      `select state, error from turns where room_id = '${room}' and error is not null order by id`,
    );
  };
});
