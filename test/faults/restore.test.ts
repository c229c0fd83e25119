import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { push, quiet, saidIn } from "../support/faults.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const main = join(import.meta.dirname, "../../src/main.ts");

/** Somebody goes on talking after a backup, which then comes back; what was answered stays so, and what is new is answered. */
describe.each([
  ["a copy of its folder", "embedded"],
  ["a copy on its server", "postgres"],
  ["a dump", "embedded"],
] as const)("a bridge whose database comes back from %s, %s", (how, database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    stage.model.onEvery(answerEach);
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  const command = (...args: readonly string[]) =>
    execFileSync(process.execPath, [main, ...args, "--config", join(stage.homeserver.dir, "config.yaml")]);

  /** Makes a backup; returns how to bring it back. */
  const backUp = async (): Promise<() => Promise<void>> => {
    if (how !== "a dump") return stage.copyDatabase();
    const file = join(stage.homeserver.dir, `${randomUUID()}.dump`);
    command("dump", file);
    return async () => {
      await rm(join(stage.homeserver.dir, "data"), { recursive: true });
      command("restore", file);
    };
  };

  const converse = async (room: string, texts: readonly string[]) => {
    for (const text of texts) {
      await ann.say(room, text);
      await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 60_000 });
    }
  };

  it("answers nothing twice of what came between, and everything that comes then", async () => {
    await stage.bridge.start();
    const [room, other] = [await stage.directRoom(ann), await stage.directRoom(ann)];
    await converse(room, ["early"]);
    await quiet(stage.toBridge);
    // Another start: the agent has been swept, as after its first quarter of an hour.
    await stage.bridge.stop();
    await stage.bridge.start();
    await expect.poll(() => stage.toHomeserver.requests.some(({ path }) => path.includes("/sync"))).toBe(true);
    await stage.bridge.stop();
    const bringBack = await backUp();
    await stage.bridge.start();
    const between = ["between 1", "between 2", "between 3"];
    await converse(room, between);
    await converse(other, between);
    await quiet(stage.toBridge);
    await stage.bridge.stop();
    await bringBack();
    await ann.say(room, "while it was down");
    await stage.bridge.start();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("while it was down"), { within: 60_000 });
    await expect.poll(() => stage.bridge.log, { timeout: 30_000 }).toContain("the sweep found events");
    const then = ["then 1", "then 2", "then 3", "then 4", "then 5"];
    await converse(room, then);
    await converse(other, then);
    await stage.check({ isRestored: true });
    const talk = (texts: readonly string[]) => texts.flatMap((text) => [text, answerTo(text)]);
    expect(await saidIn(ann, room)).toEqual(talk(["early", ...between, "while it was down", ...then]));
    expect(await saidIn(ann, other)).toEqual(talk([...between, ...then]));
  }, 240_000);

  it("answers nothing twice that the homeserver pushes once more", async () => {
    await stage.bridge.stop();
    await stage.bridge.start();
    const [room, other] = [await stage.directRoom(ann), await stage.directRoom(ann)];
    await converse(other, ["before"]);
    await quiet(stage.toBridge);
    await stage.bridge.stop();
    const bringBack = await backUp();
    await stage.bridge.start();
    await converse(room, ["pushed twice"]);
    await quiet(stage.toBridge);
    await stage.bridge.stop();
    await bringBack();
    const swept = stage.toHomeserver.hold({ when: ({ path }) => path.includes("/sync") });
    await stage.bridge.start();
    const asked = (await ann.messages(room)).find(({ body }) => body === "pushed twice");
    expect(await push(stage, "once more", [await ann.event(room, asked?.id ?? "")])).toBe(200);
    // Whatever follows from it without a look at the room has followed before this is answered.
    await converse(other, ["anew"]);
    swept.lift();
    await converse(room, ["at last"]);
    await stage.check({ isRestored: true });
    expect(await saidIn(ann, room)).toEqual(["pushed twice", "at last"].flatMap((text) => [text, answerTo(text)]));
  }, 240_000);
});
