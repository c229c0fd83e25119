import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isDraft } from "../../src/adapters/matrix/draft.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { eventually } from "../support/poll.ts";
import { toolName } from "../support/scripted-model.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";

describe("in an encrypted room, as in any other,", () => {
  let stage: Stage;
  let ann: SecretUser;
  let ben: SecretUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: {}, writer: { answer: "text", streaming: true } },
      permissions: { "@admin:clevernet.test": "admin", "@*:clevernet.test": "operate" },
    });
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    [ann, ben] = await Promise.all([
      createSecretUser(stage.homeserver, "ann"),
      createSecretUser(stage.homeserver, "ben"),
    ]);
  });
  afterAll(async () => {
    ann?.stop();
    ben?.stop();
    await stage?.strike();
  });

  const answered = (user: SecretUser, room: string, text: string) =>
    user.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 30_000 });
  const wireOf = async (room: string, id: string) =>
    (await ann.event(room, id)) as { type: string; content: Record<string, unknown> };

  it("who wrote before the invited agent had come is answered when it has", async () => {
    const room = await ann.createDirectRoom(stage.agentId());
    // A client that does not know yet who is invited gives them no key for this.
    await ann.say(room, "are you there yet");
    await ann.waitForMembership(room, "join", stage.agentId());
    await ann.say(room, "first contact");
    await answered(ann, room, "first contact");
  });

  it("an answer grows under the eyes of whoever waits, encrypted, and one is left", async () => {
    const room = await stage.directRoom(ann, "writer");
    const pieces = [1, 2].map(() => Promise.withResolvers<void>());
    const waits = pieces.map(({ promise: wait }) => ({ wait }));
    stage.model.on("a story", ["Once upon", waits[0] ?? "", " a time", waits[1] ?? "", " it ended."]);
    await ann.say(room, "tell me a story");
    const draft = await ann.waitForMessage(room, ({ body, content }) => isDraft(content) && body.includes("Once upon"));
    pieces[0]?.resolve();
    const edit = await ann.waitForMessage(room, ({ content }) =>
      String((content["m.new_content"] as { body?: string })?.body).includes("Once upon a time"),
    );
    const noPreviews = { "m.url_previews": [], "com.beeper.linkpreviews": [] };
    expect(edit.content).toMatchObject({ ...noPreviews, "m.new_content": noPreviews });
    for (const { id } of [draft, edit]) {
      const { type, content } = await wireOf(room, id);
      expect(type).toBe("m.room.encrypted");
      expect(JSON.stringify(content)).not.toContain("Once");
    }
    pieces[1]?.resolve();
    await ann.waitForMessage(room, ({ body }) => body === "Once upon a time it ended.");
    await eventually(async () => (await wireOf(room, draft.id)).content.ciphertext === undefined, {
      what: "the draft to be taken back",
    });
  });

  it("!stop ends what the agent does", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on("think for ever", { hangs: true });
    await ann.say(room, "think for ever");
    const request = await stage.model.request("think for ever");
    await ann.say(room, "!stop");
    await request.closed;
    const { id } = await ann.waitForMessage(room, ({ sender }) => sender === stage.agentId());
    expect((await wireOf(room, id)).type).toBe("m.room.encrypted");
  });

  it("an operation is done after a reaction, and denied after another", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on(/delete (yes|no)/, (request) => {
      const [call] = callsOf(request);
      if (call?.result !== undefined) return answer(request, `it says: ${call.result}`);
      return { call: toolName(request, "FS_Delete"), arguments: { path: `rooms:/${room}/none.md` } };
    });
    const decided = new Set<string>();
    for (const [word, key, words] of [
      ["yes", "✅", "it says: "],
      ["no", "❌", "it says: "],
    ] as const) {
      await ann.say(room, `delete ${word}`);
      const card = await ann.waitForMessage(
        room,
        ({ id, content }) => "org.clevernet.operation" in content && !("m.new_content" in content) && !decided.has(id),
      );
      decided.add(card.id);
      const before = ann.heard(room).length;
      await ann.react(room, card.id, key);
      const isNew = () =>
        ann
          .heard(room)
          .slice(before)
          .find(({ body }) => body.startsWith(words));
      const { body } = await eventually(isNew, { what: `what came of ${word}` });
      if (word === "no") expect(body).toMatch(/denied|refused/i);
    }
  });

  it("an answer that was begun before the room was encrypted is given encrypted", async () => {
    const room = await ann.createRoom({ is_direct: true, invite: [stage.agentId()], initial_state: [] });
    await ann.waitForMembership(room, "join", stage.agentId());
    const thinking = Promise.withResolvers<void>();
    stage.model.on("slowly", (request) => [{ wait: thinking.promise }, answer(request, "in secret")]);
    await ann.say(room, "slowly");
    await stage.model.request("slowly");
    const path = `v3/rooms/${encodeURIComponent(room)}/state/m.room.encryption/`;
    await ann.api("PUT", path, { body: { algorithm: "m.megolm.v1.aes-sha2" } });
    thinking.resolve();
    const { id } = await ann.waitForMessage(room, ({ body }) => body === "in secret");
    expect((await wireOf(room, id)).type).toBe("m.room.encrypted");
  });

  it("who has left cannot read what is said then, and can when they have come back", async () => {
    const helper = stage.agentId();
    const room = await ann.createRoom({ invite: [helper, ben.id] });
    await ben.waitForMembership(room, "invite");
    await ben.join(room);
    for (const id of [helper, ben.id]) await ann.waitForMembership(room, "join", id);
    await ann.mention(room, helper, "to all");
    const first = await wireOf(room, (await answered(ann, room, "to all")).id);
    await answered(ben, room, "to all");
    await ben.leave(room);
    await ann.waitForMembership(room, "leave", ben.id);
    await ann.mention(room, helper, "among us");
    const among = await wireOf(room, (await answered(ann, room, "among us")).id);
    expect(among.content.session_id).not.toBe(first.content.session_id);
    await ann.invite(room, ben.id);
    await ben.waitForMembership(room, "invite");
    await ben.join(room);
    await ann.waitForMembership(room, "join", ben.id);
    await ann.mention(room, helper, "to all again");
    await answered(ben, room, "to all again");
    expect(ben.heard(room).map(({ body }) => body)).not.toContain(answerTo("among us"));
  });

  it("an agent that was sent away and comes back reads what is said from then on", async () => {
    const helper = stage.agentId();
    const room = await ann.createRoom({ invite: [helper] });
    await ann.waitForMembership(room, "join", helper);
    await ann.say(room, "before");
    await answered(ann, room, "before");
    await ann.client.kick(room, helper);
    await ann.waitForMembership(room, "leave", helper);
    await ann.say(room, "behind its back");
    await ann.invite(room, helper);
    await ann.waitForMembership(room, "join", helper);
    await ann.say(room, "after");
    await answered(ann, room, "after");
    expect(ann.heard(room).map(({ body }) => body)).not.toContain(answerTo("behind its back"));
  });

  it("what an agent thinks is told nowhere: its room of thoughts, which is not encrypted, tells that it was at work", async () => {
    const admin = await stage.user("admin");
    const invited = () => admin.client.getRooms().find(({ name }) => name === "Thoughts of helper")?.roomId;
    stage.model.on("ponder", (request) => [{ reasoning: "this is deep" }, answer(request, "hm")]);
    const room = await stage.directRoom(ann);
    await ann.say(room, "ponder");
    await ann.waitForMessage(room, ({ body }) => body === "hm");
    const thoughts = await eventually(invited, { what: "the room of thoughts" });
    await admin.join(thoughts);
    await admin.waitForMessage(thoughts, ({ body }) => body.includes("worked in an encrypted room"));
    const heard = [...admin.heard(thoughts), ...ann.heard(room)];
    expect(heard.some(({ body }) => body.includes("deep"))).toBe(false);
  });

  it("has left nothing to do, and nothing in plain text", async () => {
    await stage.check();
  });
});
