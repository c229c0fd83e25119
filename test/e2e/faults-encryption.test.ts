import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { isTransaction, sendsTo } from "../support/faults.ts";
import type { Fault, RequestHead } from "../support/http-proxy.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

const asks =
  (method: string, path: string) =>
  (head: RequestHead): boolean =>
    head.method === method && head.path.startsWith(`/_matrix/client/v3/${path}`);
/** A pull of the agent's device, as no sweep is one. */
const pulls = (head: RequestHead): boolean => asks("GET", "sync")(head) && head.path.includes("device_id=");

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

  it.each([
    ["keys are uploaded", (when: Stage) => when.toHomeserver.holdAnswer({ when: asks("POST", "keys/upload") })],
    [
      "the identity is uploaded",
      (when: Stage) => when.toHomeserver.holdAnswer({ when: asks("POST", "keys/device_signing/upload") }),
    ],
    ["the device is signed", (when: Stage) => when.toHomeserver.hold({ when: asks("POST", "keys/signatures/upload") })],
  ])("while %s, an agent has its device at the next start", async (_moment, hold) => {
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

  const moments: [string, (stage: Stage) => Fault][] = [
    ["before the event is stored", ({ toBridge }) => toBridge.hold({ when: isTransaction })],
    ["after the event is stored", ({ toBridge }) => toBridge.holdAnswer({ when: isTransaction })],
    ["before its key is fetched", ({ toHomeserver }) => toHomeserver.hold({ when: pulls })],
    ["when its key was fetched", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: pulls })],
    ["before the model is asked", ({ toModel }) => toModel.hold()],
    ["before a key is given", ({ toHomeserver }) => toHomeserver.hold({ when: asks("PUT", "sendToDevice") })],
    ["after a key was given", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("PUT", "sendToDevice") })],
    ["before the answer is sent", ({ toHomeserver }) => toHomeserver.hold({ when: (head) => sendsTo(room)(head) })],
    [
      "after the answer was sent",
      ({ toHomeserver }) => toHomeserver.holdAnswer({ when: (head) => sendsTo(room)(head) }),
    ],
  ];

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
