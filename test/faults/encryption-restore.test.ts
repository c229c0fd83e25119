import { execFileSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

const main = join(import.meta.dirname, "../../src/main.ts");

describe.each(["a copy", "a dump"] as const)("an encrypted room, after the database came back from %s", (how) => {
  let stage: Stage;
  let ann: SecretUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "embedded" });
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    ann = await createSecretUser(stage.homeserver, "ann");
    room = await stage.directRoom(ann);
  });
  afterAll(async () => {
    ann?.stop();
    await stage?.strike();
  });

  const command = (...args: readonly string[]) =>
    execFileSync(process.execPath, [main, ...args, "--config", join(stage.homeserver.dir, "config.yaml")]);
  const backUp = async (): Promise<() => Promise<void>> => {
    if (how === "a copy") return stage.copyDatabase();
    const file = join(stage.homeserver.dir, "dump");
    command("dump", file);
    return async () => {
      await rm(join(stage.homeserver.dir, "data"), { recursive: true });
      command("restore", file);
    };
  };
  const identityOf = async () => {
    const body = { device_keys: { [stage.agentId()]: [] } };
    const { master_keys } = await ann.api("POST", "v3/keys/query", { body });
    return JSON.stringify((master_keys as Record<string, { keys: unknown }>)[stage.agentId()]?.keys);
  };
  const converse = async (...texts: readonly string[]) => {
    for (const text of texts) {
      await ann.say(room, text);
      await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 40_000 });
    }
  };

  it("is answered in as before, by the same identity", async () => {
    await converse("one", "two");
    const identity = await identityOf();
    await stage.bridge.stop();
    const bringBack = await backUp();
    await stage.bridge.start();
    await converse("three");
    await ann.forgetSession(room);
    await converse("four");
    await stage.bridge.kill();
    await bringBack();
    await stage.bridge.start();
    // Her client hears of a new device a moment later.
    await ann.client.getCrypto()?.getUserDeviceInfo([stage.agentId()], true);
    await ann.forgetSession(room);
    await converse("five");
    await ann.forgetSession(room);
    await converse("six");
    const answers = ann.heard(room).filter(({ sender, content }) => sender !== ann.id && content.msgtype === "m.text");
    expect(answers.map(({ body }) => body)).toEqual(["one", "two", "three", "four", "five", "six"].map(answerTo));
    expect(await identityOf()).toBe(identity);
    const { id } = await ann.waitForMessage(room, ({ body }) => body === answerTo("six"));
    expect(await ann.shieldOf(room, id)).toBe("0 null");
    await stage.check({ isRestored: true });
  }, 150_000);
});
