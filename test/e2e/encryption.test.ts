import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

describe.each(["embedded", "postgres"] as const)("an encrypted room, on the %s database", (database) => {
  let stage: Stage;
  let ann: SecretUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    ann = await createSecretUser(stage.homeserver, "ann");
    room = await stage.directRoom(ann);
  });
  afterAll(async () => {
    ann?.stop();
    await stage?.strike();
  });

  const asks = async (text: string) => {
    await ann.say(room, text);
    return ann.waitForMessage(room, ({ body }) => body === answerTo(text));
  };
  /** Events of the agent in a room, as the homeserver has them. */
  const sent = async () => {
    const path = `v3/rooms/${encodeURIComponent(room)}/messages`;
    const { chunk } = await ann.api("GET", path, { query: { dir: "b", limit: "1000" } });
    return (chunk as { type: string; sender: string; content: Record<string, unknown> }[]).filter(
      ({ sender, type }) => sender === stage.agentId() && type !== "m.room.member",
    );
  };

  it("is answered in, encrypted", async () => {
    await asks("hello");
    const events = await sent();
    expect(events.map(({ type }) => type)).toEqual(["m.room.encrypted"]);
    expect(JSON.stringify(events)).not.toContain("answer to");
  });

  it("goes on in the same session", async () => {
    await asks("how are you");
    await asks("and you");
    const sessions = new Set((await sent()).map(({ content }) => content.session_id));
    expect(sessions.size).toBe(1);
  });

  it("is read when the person begins a new session", async () => {
    await ann.forgetSession(room);
    await asks("something new");
  });

  it("is left with nothing to do, and nothing in plain text", async () => {
    await stage.check();
  });
});
