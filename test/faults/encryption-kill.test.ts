import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { bordersOfAnswer, bordersOfDevice } from "../support/secret-borders.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

describe.each(["embedded", "postgres"] as const)("killed in an encrypted room, on the %s database", (database) => {
  let stage: Stage;
  let ann: SecretUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    stage.model.onEvery(answerEach);
    ann = await createSecretUser(stage.homeserver, "ann");
  });
  afterAll(async () => {
    ann?.stop();
    await stage?.strike();
  });

  it.each(bordersOfDevice)("while %s, an agent has its device at the next start", async (_moment, hold) => {
    const fault = hold(stage);
    const starting = stage.bridge.start();
    await fault.reached();
    await stage.bridge.kill();
    await starting.catch(() => {});
    fault.lift();
  });

  it("is written to for the first time", async () => {
    await stage.bridge.start();
    await expect.poll(async () => Object.keys(await devicesOf(stage.agentId()))).toHaveLength(1);
    room = await stage.directRoom(ann);
    await ann.say(room, "first");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("first"));
  });

  const devicesOf = async (user: string): Promise<Record<string, unknown>> => {
    const { device_keys } = await ann.api("POST", "v3/keys/query", { body: { device_keys: { [user]: [] } } });
    return (device_keys as Record<string, Record<string, unknown>>)[user] ?? {};
  };

  const moments = bordersOfAnswer(() => room);

  it.each(moments)("%s, it answers once", async (moment, hold) => {
    await ann.forgetSession(room);
    // The bridge begins a new session after each start: then it gives keys.
    await stage.bridge.kill();
    await stage.bridge.start();
    const fault = hold(stage);
    const text = `asked ${moment}`;
    await ann.say(room, text);
    await fault.reached();
    await stage.bridge.kill();
    fault.lift();
    await stage.bridge.start();
    await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 40_000 });
  });

  it("has said nothing twice, nothing unreadable, and nothing in plain text", async () => {
    await stage.check();
    const heard = ann.heard(room).filter(({ sender }) => sender === stage.agentId());
    expect(heard.map(({ body }) => body)).toEqual([
      answerTo("first"),
      ...moments.map(([moment]) => answerTo(`asked ${moment}`)),
    ]);
  });
});
