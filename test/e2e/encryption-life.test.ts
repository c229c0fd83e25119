import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decryptFile, encryptFile } from "../../src/adapters/matrix/encrypted-file.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { downloadAs, upload } from "../support/media.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, toolName } from "../support/scripted-model.ts";
import { addDevice, createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";

describe("in an encrypted room", () => {
  let stage: Stage;
  let ann: SecretUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: {}, other: {} },
      permissions: { "@*:clevernet.test": "operate" },
    });
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    ann = await createSecretUser(stage.homeserver, "ann");
    room = await stage.directRoom(ann);
  });
  afterAll(async () => {
    ann?.stop();
    await stage?.strike();
  });

  const answered = (user: SecretUser, text: string, within = 20_000) =>
    user.waitForMessage(room, ({ body }) => body === answerTo(text), { within });
  const told = (words: string, within = 30_000) =>
    ann.waitForMessage(room, ({ body, content }) => content.msgtype === "m.notice" && body.includes(words), { within });
  /** Contents of a message as the bridge knows it. */
  const stored = async (eventId: string) => {
    const [row] = await stage.query<{ content: Record<string, unknown>; type: string }>(
      `select type, content from events where event_id = '${eventId}'`,
    );
    return row;
  };

  it("an answer has no shield that warns", async () => {
    await ann.say(room, "who are you");
    const { id } = await answered(ann, "who are you");
    expect(await ann.shieldOf(room, id)).toBe("0 null");
  });

  it("a further device of the person reads what is said after it came", async () => {
    const second = await addDevice(stage.homeserver, ann, "password-ann");
    await ann.say(room, "to both");
    await answered(second, "to both");
    second.stop();
  });

  it("a thread is answered in itself, and an edit changes the message", async () => {
    const root = await ann.say(room, "a root");
    await answered(ann, "a root");
    await ann.thread(room, root, "in the thread");
    const { content } = await answered(ann, "in the thread");
    expect(content["m.relates_to"]).toMatchObject({ rel_type: "m.thread", event_id: root });
    await ann.edit(room, root, "another root");
    await eventually(async () => (await stored(root))?.content.body === "another root", { what: "the edit" });
  });

  it("a command is carried out, and answered encrypted", async () => {
    await ann.say(room, "!status");
    const { id } = await ann.waitForMessage(room, ({ body }) => body.includes("scripted"));
    expect((await ann.event(room, id)).type).toBe("m.room.encrypted");
  });

  it("a redacted message is known no more", async () => {
    const id = await ann.say(room, "forget this");
    await answered(ann, "forget this");
    await ann.redact(room, id);
    await eventually(async () => Object.keys((await stored(id))?.content ?? { a: 1 }).length === 0, {
      what: "nothing",
    });
  });

  it("a file comes, and one is sent, which nobody reads without its key", async () => {
    const { bytes, keys } = encryptFile(Buffer.from("a secret recipe"));
    const url = await upload(stage.homeserver, ann, bytes);
    const id = await ann.say(room, "recipe.txt", { msgtype: "m.file", file: { ...keys, url } });
    const path = await eventually(
      async () => {
        const [row] = await stage.query<{ text: string; path: string }>(
          `select text_content as text, path from files where event_id = '${id}'`,
        );
        return row?.text === "a secret recipe" && row.path;
      },
      { what: "the file to be kept" },
    );
    stage.model.on("give it back", (request) => {
      if (callsOf(request).length > 0) return answer(request, "here it is");
      return { call: toolName(request, "SendFile"), arguments: { path: `rooms:${path}` } };
    });
    await ann.say(room, "give it back");
    const sent = await ann.waitForMessage(
      room,
      ({ sender, content }) => sender === stage.agentId() && content.file !== undefined,
    );
    const file = sent.content.file as Record<string, unknown>;
    const given = Buffer.from(await downloadAs(stage.homeserver, ann, String(file.url)));
    expect(given.toString()).not.toContain("recipe");
    expect(decryptFile(given, file).toString()).toBe("a secret recipe");
  });

  it("a file whose bytes were changed is not taken", async () => {
    const { bytes, keys } = encryptFile(Buffer.from("a poisoned recipe"));
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    const url = await upload(stage.homeserver, ann, bytes);
    const id = await ann.say(room, "poison.txt", { msgtype: "m.file", file: { ...keys, url } });
    await eventually(
      async () => {
        const [row] = await stage.query<{ reason: string }>(
          `select media->>'reason' as reason from events where event_id = '${id}'`,
        );
        return row?.reason?.includes("changed on its way");
      },
      { what: "the file to be refused" },
    );
  });

  it("a message whose key comes five seconds late is answered, and nobody was told", async () => {
    await ann.forgetSession(room);
    ann.keys.keep();
    await ann.say(room, "five seconds");
    await sleep(5_000);
    ann.keys.release();
    await answered(ann, "five seconds");
    expect(ann.heard(room).filter(({ body }) => body.includes("I cannot read"))).toEqual([]);
  });

  it("of a message whose key does not come people are told once, and it is answered when it does", async () => {
    await ann.forgetSession(room);
    ann.keys.keep();
    await ann.say(room, "very late");
    await ann.say(room, "very late too");
    await told("its key has not reached me");
    ann.keys.release();
    await answered(ann, "very late", 40_000);
    await answered(ann, "very late too", 40_000);
    expect(ann.heard(room).filter(({ body }) => body.includes("has not reached me"))).toHaveLength(1);
  }, 100_000);

  it("what comes behind an unreadable message is answered", async () => {
    await ann.forgetSession(room);
    ann.keys.keep();
    await ann.say(room, "lost");
    ann.keys.lose();
    await ann.forgetSession(room);
    await ann.say(room, "found");
    await answered(ann, "found");
  });

  it("who does not encrypt for unverified devices is told why, and is read once they do", async () => {
    const crypto = ann.client.getCrypto();
    if (!crypto) throw new Error("ann's client does not encrypt");
    await ann.forgetSession(room);
    crypto.globalBlacklistUnverifiedDevices = true;
    await ann.say(room, "not for you");
    // The notice itself is for ann's device, which is verified by nobody either.
    await told("gives me no key");
    crypto.globalBlacklistUnverifiedDevices = false;
    await ann.forgetSession(room);
    await ann.say(room, "for you");
    await answered(ann, "for you");
  });

  it("what was said before the agent came is not read, and it says so once", async () => {
    const place = await ann.createRoom();
    await ann.say(place, "before");
    await ann.invite(place, stage.agentId());
    await ann.waitForMembership(place, "join", stage.agentId());
    await ann.say(place, "after");
    await ann.waitForMessage(place, ({ body }) => body === answerTo("after"));
    await ann.waitForMessage(place, ({ body }) => body.includes("before I came"), { within: 30_000 });
    expect(ann.heard(place).filter(({ body }) => body.includes("cannot read"))).toHaveLength(1);
  });

  it("two agents read each other, until the chain's budget is spent", async () => {
    const [helper, other] = [stage.agentId(), stage.agentId("other")];
    const place = await ann.createRoom({ invite: [helper, other] });
    for (const id of [helper, other]) await ann.waitForMembership(place, "join", id);
    const mention = (to: string) => (request: ModelRequest) => answer(request, `${to} ping`);
    stage.model.on(
      (request) => JSON.stringify(request.body).includes("ping") && isOf(request, "helper"),
      mention(other),
    );
    stage.model.on(
      (request) => JSON.stringify(request.body).includes("ping") && isOf(request, "other"),
      mention(helper),
    );
    await ann.mention(place, helper, "ping");
    await eventually(
      async () => {
        const rows = await stage.query<{ n: number }>(
          `select count(*)::int as n from events where room_id = '${place}' and type = 'm.room.message' and sender like '@agent_%'`,
        );
        return (rows[0]?.n ?? 0) >= 2;
      },
      { what: "both agents to have spoken, and been read", within: 30_000 },
    );
  });
  const isOf = (request: ModelRequest, name: string): boolean => JSON.stringify(request.body).includes(`agent_${name}`);

  it("has left nothing to do, and nothing in plain text", async () => {
    await stage.check();
  });
});
