import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { upload } from "../support/media.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, userText } from "../support/scripted-model.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

/** Memories that the model is shown of itself. */
const recalledIn = (request: ModelRequest): string =>
  /<ragResults>[\s\S]*<\/ragResults>/.exec(userText(request))?.[0] ?? "";

describe("the memory of an agent, from one installation to another", () => {
  const stages: Stage[] = [];
  let file = "";
  /** The admin, to whom the agent belongs, and Ann, at the second installation. */
  let people: [TestUser, TestUser];
  beforeAll(async () => {
    for (const database of ["postgres", "embedded"] as const) {
      const stage = await Stage.set({ database });
      stage.model.on(/vault/, (request) =>
        answer(request, `It is in ${/vault is in (\w+)/.exec(recalledIn(request))?.[1]}.`),
      );
      stage.model.on(/./, (request) => answer(request, "Noted."));
      stages.push(stage);
    }
    await stages[0]?.bridge.start();
  });
  afterAll(() => Promise.all(stages.map((stage) => stage.strike())));

  const stageAt = (index: number): Stage => stages[index] as Stage;
  /** Gives a command. @returns its answer */
  const command = async (user: TestUser, room: string, give: () => Promise<string>): Promise<Message> => {
    const given = await give();
    return user.waitForMessage(room, ({ content }) => content["org.clevernet.command"] === given);
  };

  const download = async (user: TestUser, { content }: Message): Promise<string> => {
    const url = user.client.mxcUrlToHttp(String(content.url), undefined, undefined, undefined, true, true, true);
    const headers = { authorization: `Bearer ${user.credentials.accessToken}` };
    return (await fetch(String(url), { headers })).text();
  };

  it("holds what was said before the agent came, read in the background through a death of the process", async () => {
    const stage = stageAt(0);
    const admin = await stage.user("admin");
    const room = await admin.createRoom({ preset: "private_chat" });
    await admin.say(room, "The vault is in Bern, behind the harpsichord.");
    const taken = await admin.say(room, "The vault has the code zebra.");
    for (let n = 0; n < 200; n++) await admin.say(room, `The weather report number ${n} speaks of rain.`);
    await admin.redact(room, taken);
    await admin.invite(room, stage.agentId());
    await admin.waitForMembership(room, "join", stage.agentId());
    await stage.bridge.kill();
    await stage.bridge.start();
    await eventually(
      async () => (await stage.query("select 1 from interactions where text like '%harpsichord%'")).length === 1,
      {
        what: "the history to be read",
        // A homeserver that was too busy for a page is asked again after half a minute.
        within: 60_000,
      },
    );
    await admin.say(room, "Where is the vault?");
    await admin.waitForMessage(room, ({ body }) => body === "It is in Bern.");
    expect(await stage.query("select 1 from interactions where text like '%zebra%'")).toEqual([]);
    expect(await stage.query("select 1 from turns")).toHaveLength(1);
    const exported = await command(admin, room, () => admin.say(room, "!export"));
    expect(exported.body).toMatch(/^The memory of helper: 20\d memories/);
    const sent = await admin.waitForMessage(room, ({ content }) => content.msgtype === "m.file");
    expect(sent.body).toBe("memory-of-helper.jsonl");
    file = await download(admin, sent);
    expect(file).toContain("behind the harpsichord");
    await stage.check();
    await stage.bridge.stop();
  }, 180_000);

  it("is taken in by another installation, for the owner alone, and by nobody else", async () => {
    const stage = stageAt(1);
    await stage.bridge.start();
    people = [await stage.user("admin"), await stage.user("ann")];
    const [admin, ann] = people;
    const room = await stage.directRoom(admin);
    const send = async (user: TestUser, into: string): Promise<string> => {
      const uploaded = await upload(stage.homeserver, user, Buffer.from(file));
      const content = {
        msgtype: "m.file",
        body: "memory.jsonl",
        url: uploaded,
        info: { mimetype: "application/jsonl" },
      };
      return user.send(into, "m.room.message", content);
    };
    const sent = await send(admin, room);
    const imported = await command(admin, room, () => admin.reply(room, sent, "!import"));
    expect(imported.body).toMatch(/Imported into the memory of helper: 20\d memories\./);
    const again = await command(admin, room, () => admin.reply(room, sent, "!import helper"));
    expect(again.body).toMatch(/: 0 memories\.[\s\S]*20\d were there already/);
    await admin.say(room, "Where is the vault?");
    await admin.waitForMessage(room, ({ body }) => body === "It is in Bern.");
    const shared = await stage.room(admin, [ann], ["helper"]);
    await admin.mention(shared, stage.agentId(), "Where is the vault?");
    await admin.waitForMessage(shared, ({ body }) => body === "It is in undefined.");
    const theirs = await send(ann, shared);
    const refused = await command(ann, shared, () => ann.reply(shared, theirs, "!import helper"));
    expect(refused.body).toMatch(/Only the owner of helper and admins/);
  }, 180_000);

  it("is sent into a shared room without what is not everybody's, and is taken back with a message in it", async () => {
    const stage = stageAt(1);
    const [admin, ann] = people;
    const shared = await stage.room(admin, [ann], ["helper"]);
    const plum = await ann.say(shared, "The word is plum.");
    const exported = await command(admin, shared, () => admin.say(shared, "!export helper"));
    expect(exported.body).toMatch(/\b2\d\d more are not in it, as not everybody here may read them\./);
    const sent = await ann.waitForMessage(shared, ({ content }) => content.msgtype === "m.file");
    const text = await download(ann, sent);
    expect(text).toContain("The word is plum.");
    expect(text).not.toContain("harpsichord");
    const refused = await command(ann, shared, () => ann.say(shared, "!export helper"));
    expect(refused.body).toMatch(/Only the owner of helper and admins/);
    await ann.redact(shared, plum);
    const isTakenBack = async () =>
      !("url" in (((await ann.event(shared, sent.id)).content as object | undefined) ?? {}));
    await eventually(isTakenBack, { what: "the file to be taken back" });
  }, 120_000);

  it("is exported and imported in the control room", async () => {
    const stage = stageAt(1);
    const [admin] = people;
    const bot = "@clevernet:clevernet.test";
    const room = await admin.createDirectRoom(bot);
    const isIt = (name: string) => name === "Clevernet: control room";
    const find = () => admin.client.getRooms().find((one) => one.getMyMembership() === "invite" && isIt(one.name));
    await admin.waitForMembership(room, "join", bot);
    await eventually(() => find() !== undefined, { what: "the control room" });
    const control = String(find()?.roomId);
    await admin.join(control);
    const exported = await command(admin, control, () => admin.say(control, "!export helper"));
    expect(exported.body).toMatch(/^The memory of helper: \d+ memories/);
    const sent = await admin.waitForMessage(control, ({ content }) => content.msgtype === "m.file");
    expect(sent.sender).toBe(bot);
    expect(await download(admin, sent)).toContain("behind the harpsichord");
    const url = await upload(stage.homeserver, admin, Buffer.from("no export"));
    const bad = await admin.send(control, "m.room.message", { msgtype: "m.file", body: "x.jsonl", url, info: {} });
    const refused = await command(admin, control, () => admin.reply(control, bad, "!import helper"));
    expect(refused.body).toMatch(/no export of an agent's memory/);
  }, 120_000);
});
