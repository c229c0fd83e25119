import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { saidIn, sendsTo } from "../support/faults.ts";
import { isCard, obey } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const bot = "@clevernet:clevernet.test";

describe("a room that becomes encrypted while something waits to be sent there", () => {
  let stage: Stage;
  let admin: TestUser;
  let ann: SecretUser;
  let control: string;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      permissions: { "@admin:clevernet.test": "admin", "@*:clevernet.test": "operate" },
    });
    obey(stage.model).on("tell me", (request) => answer(request, "a secret"));
    await stage.bridge.start();
    [admin, ann] = await Promise.all([stage.user("admin"), createSecretUser(stage.homeserver, "ann")]);
    control = await admin.createRoom({ invite: [bot] });
    await admin.waitForMembership(control, "join", bot);
    const made = () => admin.client.getRooms().find(({ name }) => name === "Clevernet: control room")?.roomId;
    await eventually(() => made() !== undefined, { what: "the control room" });
    control = String(made());
    await admin.join(control);
  });
  afterAll(async () => {
    ann?.stop();
    await stage.strike();
  });

  const encrypt = async (user: TestUser, room: string): Promise<void> => {
    const path = `v3/rooms/${encodeURIComponent(room)}/state/m.room.encryption/`;
    await user.api("PUT", path, { body: { algorithm: "m.megolm.v1.aes-sha2" } });
    const known = () =>
      stage.query(`select 1 from room_state where room_id = '${room}' and type = 'm.room.encryption'`);
    await eventually(async () => (await known()).length > 0, { what: "the bridge to know that it is encrypted" });
  };
  /** A room in which ann says something; what follows waits, and she encrypts it before it can be sent. */
  const waitingFor = async (text: string): Promise<string> => {
    const helper = stage.agentId();
    const room = await ann.createRoom({ is_direct: true, invite: [helper], initial_state: [] });
    await ann.waitForMembership(room, "join", helper);
    const cut = stage.toHomeserver.cutRequest({ when: sendsTo(room) });
    await ann.say(room, text);
    await cut.reached();
    await encrypt(ann, room);
    cut.lift();
    return room;
  };
  const warned = (room: string) => admin.waitForMessage(control, ({ body }) => body.startsWith(`The room ${room} is`));

  it("what waited to be said is said encrypted", async () => {
    const room = await waitingFor("tell me");
    await ann.waitForMessage(room, ({ body }) => body === "a secret");
    expect(await saidIn(ann, room)).toEqual(["tell me"]);
    await stage.check();
  });

  it("a card that waited is asked encrypted, and counts", async () => {
    const room = await waitingFor('do 1 SetAgentParameters {"wakeUpTimerSeconds":600}');
    const card = await ann.waitForMessage(room, isCard);
    expect(card.body).toContain("wake by myself after `600` seconds");
    await ann.react(room, card.id, "✅");
    await ann.waitForMessage(room, ({ content }) => JSON.stringify(content["m.new_content"])?.includes("and done"));
    expect(await saidIn(ann, room)).toHaveLength(1);
    await stage.check();
  });

  it("the outcome of a card that was asked in plain text is told in a message of its own", async () => {
    const helper = stage.agentId();
    const room = await ann.createRoom({ is_direct: true, invite: [helper], initial_state: [] });
    await ann.waitForMembership(room, "join", helper);
    await ann.say(room, 'do 2 SetAgentParameters {"wakeUpTimerSeconds":601}');
    const card = await ann.waitForMessage(room, isCard);
    await encrypt(ann, room);
    await ann.react(room, card.id, "✅");
    const { body, content, id } = await ann.waitForMessage(room, ({ body }) => body.includes("and done"));
    expect(body).not.toMatch(/^\*\s/);
    expect(content["m.relates_to"]).toEqual({ "m.in_reply_to": { event_id: card.id } });
    expect((await ann.event(room, id)).type).toBe("m.room.encrypted");
    await stage.check();
  });

  it("the bot does not introduce itself", async () => {
    const room = await admin.createRoom();
    const cut = stage.toHomeserver.cutRequest({ when: sendsTo(room) });
    await admin.invite(room, bot);
    await cut.reached();
    await encrypt(admin, room);
    cut.lift();
    await admin.waitForMessage(room, ({ body, sender }) => sender === bot && body.includes("that I cannot read"));
    expect(await saidIn(admin, room)).toHaveLength(1);
    expect((await warned(room)).body).toContain(`What ${bot} has to say there is not sent`);
    await stage.check();
  });
});
