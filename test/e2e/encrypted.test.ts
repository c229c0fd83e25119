import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { saidIn, sendsTo } from "../support/faults.ts";
import { isCard, obey } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const bot = "@clevernet:clevernet.test";

describe("a room that becomes encrypted while something waits to be sent there", () => {
  let stage: Stage;
  let admin: TestUser;
  let ann: TestUser;
  let control: string;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      permissions: { "@admin:clevernet.test": "admin", "@*:clevernet.test": "operate" },
    });
    obey(stage.model)
      .on("tell me", (request) => answer(request, "a secret"))
      .on("fail", { status: 400, error: "no" });
    await stage.bridge.start();
    [admin, ann] = await Promise.all([stage.user("admin"), stage.user("ann")]);
    control = await admin.createRoom({ invite: [bot] });
    await admin.waitForMembership(control, "join", bot);
    const made = () => admin.client.getRooms().find(({ name }) => name === "Clevernet: control room")?.roomId;
    await eventually(() => made() !== undefined, { what: "the control room" });
    control = String(made());
    await admin.join(control);
  });
  afterAll(() => stage.strike());

  const encrypt = async (user: TestUser, room: string): Promise<void> => {
    const path = `v3/rooms/${encodeURIComponent(room)}/state/m.room.encryption/`;
    await user.api("PUT", path, { body: { algorithm: "m.megolm.v1.aes-sha2" } });
    const known = () =>
      stage.query(`select 1 from room_state where room_id = '${room}' and type = 'm.room.encryption'`);
    await eventually(async () => (await known()).length > 0, { what: "the bridge to know that it is encrypted" });
  };
  /** A room in which ann says something; what follows waits, and she encrypts it before it can be sent. */
  const waitingFor = async (text: string): Promise<string> => {
    const room = await stage.directRoom(ann);
    const cut = stage.toHomeserver.cutRequest({ when: sendsTo(room) });
    await ann.say(room, text);
    await cut.reached();
    await encrypt(ann, room);
    cut.lift();
    await ann.waitForMessage(room, ({ body }) => body.includes("I cannot read encrypted messages yet"));
    return room;
  };
  const warned = (room: string) => admin.waitForMessage(control, ({ body }) => body.startsWith(`The room ${room} is`));

  it.each(["tell me", "fail"])(
    "what follows from %j is not said, and those who run the bridge hear of it",
    async (text) => {
      const room = await waitingFor(text);
      expect(await saidIn(ann, room)).toEqual([text, expect.stringContaining("I cannot read encrypted messages yet")]);
      expect((await warned(room)).body).toContain(`What ${stage.agentId()} has to say there is not sent`);
      await stage.check();
    },
  );

  it("a card is asked in the control room instead, and counts there", async () => {
    const room = await waitingFor('do 1 SetAgentParameters {"wakeUpTimerSeconds":600}');
    const card = await admin.waitForMessage(control, isCard);
    expect(card.body).toContain("wakeUpTimerSeconds");
    await admin.react(control, card.id, "✅");
    await admin.waitForMessage(control, ({ content }) =>
      JSON.stringify(content["m.new_content"])?.includes("carried out"),
    );
    expect(await saidIn(ann, room)).toHaveLength(2);
    await stage.check();
  });

  it("the bot does not introduce itself", async () => {
    const room = await admin.createRoom();
    const cut = stage.toHomeserver.cutRequest({ when: sendsTo(room) });
    await admin.invite(room, bot);
    await cut.reached();
    await encrypt(admin, room);
    cut.lift();
    await admin.waitForMessage(room, ({ body, sender }) => sender === bot && body.includes("I cannot read encrypted"));
    expect(await saidIn(admin, room)).toHaveLength(1);
    expect((await warned(room)).body).toContain(`What ${bot} has to say there is not sent`);
    await stage.check();
  });
});
