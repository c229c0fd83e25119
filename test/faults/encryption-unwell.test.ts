import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import type { RequestHead } from "../support/http-proxy.ts";
import { eventually } from "../support/poll.ts";
import { addDevice, createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";
import { ratchetIndex } from "../support/wire.ts";

const asks =
  (method: string, path: string) =>
  (head: RequestHead): boolean =>
    head.method === method && head.path.startsWith(`/_matrix/client/v3/${path}`);

describe("in an encrypted room, a homeserver that is away, overloaded or broken", () => {
  let stage: Stage;
  let ann: SecretUser;
  let room: string;
  const asked: string[] = [];
  const devices: SecretUser[] = [];
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres" });
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    ann = await createSecretUser(stage.homeserver, "ann");
    room = await stage.directRoom(ann);
  });
  afterAll(async () => {
    for (const user of [ann, ...devices]) user?.stop();
    await stage?.strike();
  });

  it.each([
    ["is asked what has come", (head: RequestHead) => asks("GET", "sync")(head) && head.path.includes("device_id=")],
    ["is asked for devices", asks("POST", "keys/query")],
    ["is asked for keys of theirs", asks("POST", "keys/claim")],
    ["is given keys for them", asks("PUT", "sendToDevice")],
    [
      "is given a message",
      (head: RequestHead) => head.method === "PUT" && head.path.includes("/send/m.room.encrypted/"),
    ],
  ] as const)(
    "when it %s costs patience, and no answer",
    async (_moment, when) => {
      // A device that is new needs all of that.
      devices.push(await addDevice(stage.homeserver, ann, "password-ann"));
      await ann.forgetSession(room);
      const busy = { errcode: "M_LIMIT_EXCEEDED", retry_after_ms: 100 };
      const faults = [
        stage.toHomeserver.respond({ status: 429, body: busy }, { when, times: 1 }),
        stage.toHomeserver.respond({ status: 500 }, { when, times: 1 }),
        stage.toHomeserver.cutRequest({ when, times: 1 }),
        stage.toHomeserver.cutAnswer({ when, times: 1 }),
      ];
      const texts = ["one", "two"].map((text) => `${text} of ${asked.length}`);
      for (const text of texts) await ann.say(room, text);
      asked.push(...texts);
      for (const fault of faults) await fault.reached(60_000);
      for (const text of texts)
        await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 60_000 });
      for (const fault of faults) fault.lift();
      // Each device reads it: none was forgotten on the way.
      const last = answerTo(texts.at(-1) ?? "");
      await devices.at(-1)?.waitForMessage(room, ({ body }) => body === last, { within: 30_000 });
    },
    180_000,
  );

  it("a database that goes away while a key is given costs patience, and no answer", async () => {
    await ann.forgetSession(room);
    devices.push(await addDevice(stage.homeserver, ann, "password-ann"));
    const giving = stage.toHomeserver.holdAnswer({ when: asks("PUT", "sendToDevice"), times: 1 });
    const text = "without a database";
    await ann.say(room, text);
    asked.push(text);
    await giving.reached(60_000);
    await stage.toDatabase?.refuse();
    giving.lift();
    await eventually(() => stage.bridge.log.includes("ECONNREFUSED"), {
      within: 30_000,
      what: "the bridge to miss it",
    });
    await stage.toDatabase?.accept();
    await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 60_000 });
  }, 180_000);

  it("has had everything answered in order, once, and encrypted once", async () => {
    await stage.check();
    const said = ann.heard(room).filter(({ sender }) => sender === stage.agentId());
    expect(said.map(({ body }) => body)).toEqual(asked.map(answerTo));
    const path = `v3/rooms/${encodeURIComponent(room)}/messages`;
    const { chunk } = await ann.api("GET", path, { query: { dir: "f", limit: "1000" } });
    const ours = (chunk as { sender: string; content: Record<string, unknown> }[]).filter(
      ({ sender, content }) => sender === stage.agentId() && content.ciphertext !== undefined,
    );
    const sessions = Map.groupBy(ours, ({ content }) => content.session_id);
    for (const events of sessions.values())
      expect(events.map(({ content }) => ratchetIndex(String(content.ciphertext)))).toEqual(
        events.map((_, index) => index),
      );
  });
});
