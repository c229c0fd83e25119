import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answer, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

describe("commands", () => {
  let stage: Stage;
  /** May do everything; may chat; may nothing. */
  let ann: TestUser;
  let ben: TestUser;
  let cat: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      permissions: {
        "@admin:clevernet.test": "admin",
        "@ann:clevernet.test": "operate",
        "@ben:clevernet.test": "chat",
        // A careless operator: agents must not command even so.
        "@agent_*:clevernet.test": "operate",
      },
    });
    await stage.bridge.start();
    [ann, ben, cat] = await Promise.all([stage.user("ann"), stage.user("ben"), stage.user("cat")]);
    room = await stage.room(ann, [ben, cat], ["helper"]);
    stage.model.on("ping", (request) => answer(request, "pong"));
  });
  afterAll(() => stage.strike());

  const isReplyTo =
    (id: string) =>
    ({ content }: Message) =>
      content["org.clevernet.command"] === id;
  /** Gives a command; returns the bridge's answer. */
  const command = async (line: string, { by = ann, where = room } = {}): Promise<string> => {
    const { body, content } = await ann.waitForMessage(where, isReplyTo(await by.say(where, line)));
    expect(content.msgtype).toBe("m.notice");
    return body;
  };

  it("!help names the commands, a line for each topic, and !help TOPIC has their usage", async () => {
    const help = await command("!help");
    for (const word of ["!help", "!status", "!stop", "!say", "!set"]) expect(help).toContain(`\`${word}\``);
    expect(help.split("\n").length).toBeLessThan(15);
    const basics = await command("!help basics");
    for (const usage of ["!help [about]", "!status", "!stop [number]", "!set <wakeUpTimerSeconds>"])
      expect(basics).toContain(`\`${usage}\``);
  });

  it("is quoted by its answer only where something else stands between them", async () => {
    const relationTo = async (id: string) => (await ann.waitForMessage(room, isReplyTo(id))).content["m.relates_to"];
    expect(await relationTo(await ann.say(room, "!status"))).toBeUndefined();
    const held = stage.toBridge.hold();
    // While this is held on its way, what follows comes together.
    await ann.say(room, "on its way", { msgtype: "m.notice" });
    await held.reached();
    const command = await ann.say(room, "!status");
    await ann.say(room, "in between", { msgtype: "m.notice" });
    held.lift();
    expect(await relationTo(command)).toEqual({ "m.in_reply_to": { event_id: command } });
  });

  it.each(["! help", "!", "!!"])("%j is answered, and not by the model", async (line) => {
    const asked = stage.model.requests.length;
    const direct = await stage.directRoom(ann);
    expect(await command(line, { where: direct })).toContain("`!help`");
    expect(stage.model.requests).toHaveLength(asked);
  });

  it("an agent that is not here is told from a command that there is not", async () => {
    expect(await command("!nobody status")).toContain("There is no agent `nobody` here");
  });

  it("!help COMMAND explains each of its parts", async () => {
    expect(await command("!help set")).toMatch(/`wakeUpTimerSeconds`: .* \(a whole number from 60 to 10800\)/);
  });

  it("!status says model, mode, timer, and whether the agent is at work", async () => {
    const status = await command("!status");
    for (const fact of ["model: scripted", "mode: create", "wakes by itself: never", "at work here: no"])
      expect(status).toContain(fact);
  });

  it("!start greets, and says what the agent answers in this room", async () => {
    expect(await command("!start")).toMatch(
      /^Hello! \*\*helper\*\* \(@agent_helper:.* answers what mentions it, .*`!help`/s,
    );
    const direct = await stage.directRoom(ann);
    expect(await command("!start", { where: direct })).toContain("answers everything that you say here");
  });

  it("!say makes the agent speak", async () => {
    await ann.say(room, "!say good **evening**, all");
    const { sender } = await ben.waitForMessage(room, ({ body }) => body === "good **evening**, all");
    expect(sender).toBe(stage.agentId());
  });

  it("!set changes the agent's timer", async () => {
    await command("!set 120");
    expect(await command("!status")).toContain("wakes by itself: after 120 s");
  });

  it("a wrong argument is answered with the reason and the usage", async () => {
    const text = await command("!set soon");
    expect(text).toContain("wakeUpTimerSeconds: ");
    expect(text).toContain("`!set <wakeUpTimerSeconds>`");
  });

  it("a mistyped command is answered with those that there are", async () => {
    const text = await command("!hlep");
    expect(text).toContain("There is no command `!hlep`");
    expect(text).toContain("Did you mean `!help`?");
    for (const name of ["`!help`", "`!say`", "`!set`", "`!status`", "`!stop`"]) expect(text).toContain(name);
  });

  it("who may only chat is told of no command for which that is not enough", async () => {
    const direct = await stage.directRoom(ben);
    const hears = async (line: string): Promise<string> =>
      (await ben.waitForMessage(direct, isReplyTo(await ben.say(direct, line)))).body;
    for (const told of [await hears("!help"), await hears("!hepl")]) {
      expect(told).toContain("!status");
      expect(told).not.toMatch(/!(?:approve|cat|say|write)/);
    }
  });

  it("who may only chat is told which right is missing, and nothing is done", async () => {
    expect(await command("!set 600", { by: ben })).toContain("you need the right to operate for it; you have: chat");
    expect(await command("!say I am the agent", { by: ben })).toContain("right to operate");
    expect(await command("!status")).toContain("wakes by itself: after 120 s");
    expect((await ann.messages(room)).map(({ body }) => body)).not.toContain("I am the agent");
  });

  describe("!stop", () => {
    let direct: string;
    beforeAll(async () => {
      direct = await stage.directRoom(ben);
    });
    const running = () => stage.model.request((request) => roomOf(request) === direct && !request.wasAborted);

    it("ends the running turn at once: the model's stream is cut, and nothing is said", async () => {
      stage.model.on("go on for ever", [{ text: "I begin" }, { hangs: true }]);
      await ben.say(direct, "go on for ever");
      const request = await running();
      const id = await ben.say(direct, "!stop");
      const { body } = await ben.waitForMessage(direct, isReplyTo(id));
      expect(body).toBe("helper was stopped.");
      await request.closed;
      expect(request.wasAborted).toBe(true);
    });

    it("lets the next message be answered, and says that nothing runs where nothing does", async () => {
      await ben.say(direct, "ping");
      await ben.waitForMessage(direct, ({ body }) => body === "pong");
      const id = await ben.say(direct, "!stop");
      expect((await ben.waitForMessage(direct, isReplyTo(id))).body).toBe("helper is not at work here.");
      const said = (await ben.messages(direct)).filter(({ sender, content }) => {
        return sender === stage.agentId() && content.msgtype === "m.text";
      });
      expect(said.map(({ body }) => body)).toEqual(["pong"]);
    });
  });

  it.each<[string, () => Promise<string>]>([
    ["a person without permission", () => cat.say(room, "!say I obey cat")],
    ["a notice", () => ann.say(room, "!say I obey notices", { msgtype: "m.notice" })],
    ["an emote", () => ann.say(room, "!say I obey emotes", { msgtype: "m.emote" })],
    ["quoted text", () => ann.say(room, "> !say I obey quotations")],
    ["a later line", () => ann.say(room, "look:\n!say I obey later lines")],
    ["an edit", async () => ann.edit(room, await ann.say(room, "harmless"), "!say I obey edits")],
    [
      "a reply's quotation",
      () => ann.say(room, "> <@ben:clevernet.test> !say I obey replies\n\nno", replyTo("$some:event")),
    ],
    [
      "an agent",
      async () => {
        stage.model.on("command yourself", (request) => answer(request, "!say I obey agents"));
        await ben.mention(room, stage.agentId(), "command yourself");
        return (await ann.waitForMessage(room, ({ body }) => body === "!say I obey agents")).id;
      },
    ],
  ])("in the words of %s are none", async (_whose, speak) => {
    const before = await spoken();
    const id = await speak();
    // Answered by the router: what came before has been routed.
    await command("!status");
    const messages = await ann.messages(room);
    expect(messages.filter(isReplyTo(id)).filter(({ sender }) => sender !== ann.id)).toEqual([]);
    expect((await spoken()).filter((body) => !before.includes(body) && !body.startsWith("!"))).toEqual([]);
  });

  it("!set holds until the bridge starts again", async () => {
    await command("!set 240");
    await stage.bridge.stop();
    await stage.bridge.start();
    expect(await command("!status")).toContain("wakes by itself: never");
  });

  it("leave nothing unfinished, and nothing sent twice or out of order", () => stage.check());

  const replyTo = (id: string) => ({ "m.relates_to": { "m.in_reply_to": { event_id: id } } });
  /** Texts that the agent itself has said in the room. */
  const spoken = async () =>
    (await ann.messages(room))
      .filter(({ sender, content }) => sender === stage.agentId() && content.msgtype === "m.text")
      .map(({ body }) => body);
});
