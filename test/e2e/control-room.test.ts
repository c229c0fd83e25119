import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { isCard, isResult, obey } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, newMessages, toolName, userText } from "../support/scripted-model.ts";
import { answer, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const bot = "@clevernet:clevernet.test";

interface ConfigFile {
  permissions: Record<string, string>;
  agents: Record<string, object>;
  model: Record<string, unknown>;
  [section: string]: unknown;
}

describe("the control room", () => {
  let stage: Stage;
  let admin: TestUser;
  let ann: TestUser;
  let control: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", agents: { helper: { mode: "update" } } });
    await stage.bridge.start();
    [admin, ann] = await Promise.all([stage.user("admin"), stage.user("ann")]);
    obey(stage.model).on("ping", (request) => answer(request, "pong"));
  });
  afterAll(() => stage.strike());

  const isReplyTo =
    (id: string) =>
    ({ content }: Message) =>
      content["org.clevernet.command"] === id;
  const isNotice = ({ sender, content }: Message) => sender === stage.agentId() && content.msgtype === "m.notice";
  /** Gives a command; returns the bridge's answer. */
  const command = async (line: string, { by = admin, where = control } = {}): Promise<string> =>
    (await by.waitForMessage(where, isReplyTo(await by.say(where, line)))).body;
  const expectPong = async (room: string, by = ann): Promise<void> => {
    const count = async () => (await by.messages(room)).filter(({ body }) => body === "pong").length;
    const before = await count();
    await by.say(room, "ping");
    await eventually(async () => (await count()) > before, { what: "pong" });
  };
  /** Accepts the invitation into a room of this name. */
  const accept = async (user: TestUser, name: string): Promise<string> => {
    const find = () => user.client.getRooms().find((room) => room.getMyMembership() === "invite" && room.name === name);
    await eventually(() => find() !== undefined, { what: `an invitation of ${user.id} into ${name}` });
    const roomId = String(find()?.roomId);
    await user.join(roomId);
    return roomId;
  };
  const membershipOf = (user: TestUser, room: string, userId: string) =>
    user.api("GET", `v3/rooms/${encodeURIComponent(room)}/state/m.room.member/${encodeURIComponent(userId)}`);
  const configure = async (change: (config: ConfigFile) => void): Promise<void> => {
    const file = join(stage.homeserver.dir, "config.yaml");
    const config = parse(await readFile(file, "utf8")) as ConfigFile;
    change(config);
    await writeFile(file, stringify(config));
  };

  it("is made for the first admin who invites the bot, for nobody else, and is explained", async () => {
    const direct = await admin.createDirectRoom(bot);
    const hello = await admin.waitForMessage(direct, ({ sender }) => sender === bot);
    control = await accept(admin, "Clevernet: control room");
    expect(hello.body).toContain(`https://matrix.to/#/${control}`);
    await admin.waitForMessage(control, ({ body }) => body.includes("`!help` lists"));
    const rules = await admin.api("GET", `v3/rooms/${encodeURIComponent(control)}/state/m.room.join_rules`);
    expect(rules.join_rule).toBe("invite");
    await expect(admin.invite(control, ann.id)).rejects.toThrow("permission to invite");
  });

  it("is there once: who writes to the bot elsewhere is sent to it", async () => {
    const direct = await admin.createDirectRoom(bot);
    await admin.say(direct, "hello?");
    const hello = await admin.waitForMessage(direct, ({ sender }) => sender === bot);
    expect(hello.body).toContain(`https://matrix.to/#/${control}`);
  });

  it("has no place for others: the bot refuses their invitations with a reason", async () => {
    const direct = await ann.createDirectRoom(bot);
    await ann.waitForMembership(direct, "leave", bot);
    const { reason } = await membershipOf(ann, direct, bot);
    expect(reason).toContain("Only admins of this bridge may invite its bot; @ann:clevernet.test has: chat");
  });

  it("knows commands that can be given nowhere else", async () => {
    expect(await command("!help")).toContain("`!permission set`");
    expect(await command("!help bridge")).toContain("`!permission set <actor> <level>`");
    const room = await stage.room(admin, [ann], ["helper"]);
    expect(await command("!help", { where: room })).not.toContain("!permission");
    expect(await command("!permission list", { where: room })).toContain("is a command of the control room");
  });

  it("has an overview of agents at work, questions, schedules, what waits, and what was spent", async () => {
    stage.model.on("take your time", [{ text: "I begin" }, { hangs: true }]);
    const room = await stage.directRoom(ann);
    await ann.say(room, "take your time");
    const shows = async (text: string | RegExp) =>
      eventually(async () => new RegExp(text).test(await command("!status")), { what: `${text} in the overview` });
    await shows(/at work: 1 turn\n {2}- helper in .*, for \d+ s \(new event\)/);
    await command("!stop", { by: ann, where: room });
    await shows("at work: 0 turns");
    const idle = await command("!status");
    for (const line of [
      "agents: 1",
      "waiting for approval: 0",
      "schedules: 0",
      "computers: There are no computers",
      "spent today (UTC): ",
    ])
      expect(idle).toContain(`- ${line}`);
  });

  it("lets no agent in", async () => {
    await command(`!agent invite helper ${control}`);
    await admin.waitForMembership(control, "leave", stage.agentId());
  });

  it("guesses what was meant by a mistyped command", async () => {
    expect(await command("!agnet list")).toContain("Did you mean `!agent list`?");
    expect(await command("!agent lsit")).toContain("Did you mean `!agent list`?");
    expect(await command("!agent show hepler")).toContain("There is no agent hepler. Did you mean helper?");
  });

  describe("!permission", () => {
    let room: string;
    beforeAll(async () => {
      room = await stage.directRoom(ann);
      await expectPong(room);
    });

    it("takes effect at once, and is answered with what changed, from what, to what", async () => {
      const changed = await command(`!permission set @*:clevernet.test none`);
      expect(changed).toBe("permission of @*:clevernet.test: `chat` → `none`");
      await command(`!permission remove @*:clevernet.test`);
      await ann.say(room, "ping");
      expect((await ann.waitForMessage(room, isNotice)).body).toContain("has no permission to talk to me");
      await command(`!permission set ${ann.id} operate`);
      await expectPong(room);
    });

    it("takes effect in a turn that is running: its next operation waits for somebody who may", async () => {
      const demoted = Promise.withResolvers<void>();
      let calls = 0;
      stage.model.on("set it twice", async function* (request: ModelRequest) {
        calls += 1;
        if (calls === 2) await demoted.promise;
        if (calls < 3) yield { call: toolName(request, "SetAgentParameters"), arguments: { wakeUpTimerSeconds: 120 } };
        else yield "I stop.";
      });
      await ann.say(room, "set it twice");
      await eventually(() => calls === 2, { what: "the second step" });
      await command(`!permission set ${ann.id} chat`);
      demoted.resolve();
      const waiting = async () => {
        const [row] = await stage.query<{ id: number }>(
          "select id from operations where state = 'asked' and asked_because like '%needs the right to operate%'",
        );
        return row?.id;
      };
      const id = await eventually(waiting, { what: "the second call to wait for approval" });
      await command(`!deny ${id}`);
      await eventually(() => calls >= 3, { what: "the third step" });
      const results = await stage.query<{ entry: string }>(
        "select entry from ephemeris where entry like '%functionResult%' order by id desc limit 2",
      );
      const [second, first] = results.map(({ entry }) => entry);
      expect(first).toContain("120");
      expect(second).toContain("was not carried out");
    });

    it("is given to no display name", async () => {
      expect(await command("!permission set Mia chat")).toContain('actor: found "Mia", expected a user id');
    });

    it("never takes away the last admin", async () => {
      expect(await command(`!permission remove ${admin.id}`)).toContain("is the last who is named an admin");
      expect(await command("!permission list")).toContain(`\`${admin.id}\`: admin (configuration)`);
    });

    it("brings a new admin into the control room and the thoughts rooms, and a former one out of them", async () => {
      await command(`!permission set ${ann.id} admin`);
      const thoughts = await accept(ann, "Thoughts of helper");
      await accept(ann, "Clevernet: control room");
      expect(await command("!agent list", { by: ann })).toContain("**helper**");
      await command(`!permission set ${ann.id} chat`);
      await ann.waitForMembership(thoughts, "leave");
      await ann.waitForMembership(control, "leave");
    });
  });

  describe("!agent", () => {
    it("is offered where an admin invites one that is not there; made, it accepts that invitation", async () => {
      const room = await admin.createDirectRoom(stage.agentId("scout"));
      await admin.waitForMessage(control, ({ body }) => body.includes("`!agent create scout`"));
      expect(await command('!agent create scout --persona "# Scout"')).toContain(
        "agent scout: nothing → `@agent_scout",
      );
      await admin.waitForMembership(room, "join", stage.agentId("scout"));
      expect(await command("!agent create scout")).toBe("There is an agent scout already.");
      expect(await command("!agent show scout")).toContain(room);
      await admin.say(room, "ping");
      await admin.waitForMessage(room, ({ body }) => body === "pong");
    });

    it("set changes a field, says from what to what, and refuses what cannot be used", async () => {
      expect(await command("!agent set scout temperature 0.5")).toBe("agent scout: temperature: `1` → `0.5`");
      expect(await command("!agent set scout tools core")).toBe(
        'agent scout: tools: `["core","memory","sandbox","web"]` → `["core"]`',
      );
      expect(await command("!agent set scout models.think.reasoning high")).toBe(
        "agent scout: models.think.reasoning: `the default` → `high`",
      );
      expect(await command("!agent set scout models.think.reasoning hard")).toContain("models.think.reasoning: found");
      expect(await command("!agent set scout models.think null")).toContain("→ `the default`");
      expect(await command("!agent set scout temperature hot")).toContain("temperature: found");
      expect(await command("!agent set scout tools planner")).toContain("Add core, or set answer to text");
      expect(await command("!agent set scout temprature null")).toContain('did you mean "temperature"?');
      expect(await command("!agent set scout temprature 1")).toContain('did you mean "temperature"?');
      expect(await command("!agent show scout")).toContain('"temperature": 0.5');
      await command("!agent set scout displayName Pathfinder");
      const profile = async () => (await admin.api("GET", `v3/profile/${stage.agentId("scout")}`)).displayname;
      await eventually(async () => (await profile()) === "Pathfinder", { what: "the new name" });
    });

    it("set: what its model refuses is left out, and the control room hears of it once", async () => {
      const isRefused = ({ body }: ModelRequest) => body.model === "stubborn" && "reasoning_effort" in body;
      stage.model.on(/thought \d/, (request) =>
        isRefused(request)
          ? { status: 400, error: "Unknown parameter: reasoning_effort" }
          : answer(request, `had ${newMessages(request).at(-1)?.body}`),
      );
      await command('!agent set scout models {"think": {"name": "stubborn", "reasoning": "low"}}');
      const room = await stage.directRoom(ann, "scout");
      for (const thought of ["thought 1", "thought 2", "thought 3"]) {
        if (thought === "thought 3") {
          await stage.bridge.stop();
          await stage.bridge.start();
        }
        await ann.say(room, thought);
        await ann.waitForMessage(room, ({ body }) => body === `had ${thought}`);
      }
      expect(stage.model.requests.filter(isRefused)).toHaveLength(2);
      const isTold = ({ body }: Message) => body.includes("The model stubborn refuses `reasoning: low`");
      await admin.waitForMessage(control, isTold);
      await command("!agent set scout models null");
      expect((await admin.messages(control)).filter(isTold)).toHaveLength(1);
    });

    it("pause: it wakes for nothing, and says so once in a room; resume ends it", async () => {
      const room = await stage.directRoom(ann);
      await command("!agent pause helper");
      await ann.say(room, "ping 1");
      await ann.say(room, "ping 2");
      await ann.waitForMessage(room, (message) => isNotice(message) && message.body.startsWith("I am paused"));
      expect(await command("!agent resume helper")).toBe("agent helper: `paused` → `at work`");
      await expectPong(room);
      const said = (await ann.messages(room)).filter(({ sender }) => sender === stage.agentId());
      expect(said.map(({ body }) => body.slice(0, 11))).toEqual(["I am paused", "pong"]);
    });

    it("pause ends also what it has asked for: the card says so, and the agent is told when it works again", async () => {
      const room = await stage.directRoom(admin);
      await admin.say(room, `do 1 FS_Delete {"path":"rooms:/${room}/none.md"}`);
      const card = await admin.waitForMessage(room, isCard);
      await command("!agent pause helper");
      const ended = await admin.waitForMessage(room, ({ content }) => "m.new_content" in content);
      expect(ended.body).toContain(`stopped by ${admin.id}`);
      expect(await command("!operations 1")).toMatch(/🛑 interrupted, helper in `.*`: Delete `none.md`/);
      await command("!agent resume helper");
      await admin.react(room, card.id, "✅");
      await expectPong(room, admin);
      const shown = stage.model.requests.findLast((request) => roomOf(request) === room);
      expect(shown && userText(shown)).toContain(`Interrupted: stopped by ${admin.id}`);
      expect((await admin.messages(room)).filter(isResult(1))).toEqual([]);
    });

    it("leave makes it leave a room", async () => {
      const room = await stage.room(ann, [], ["helper"]);
      const isListed = async () => (await command("!room list")).includes(room);
      await eventually(isListed, { what: "the room to be listed" });
      expect(await command(`!agent leave helper ${room}`)).toContain("`join` → `leave`");
      await ann.waitForMembership(room, "leave", stage.agentId());
    });

    it("delete: it leaves its rooms, and its user is deactivated", async () => {
      const room = await stage.directRoom(admin, "scout");
      expect(await command("!agent delete scout")).toBe("agent scout: `@agent_scout:clevernet.test` → `deleted`");
      await admin.waitForMembership(room, "leave", stage.agentId("scout"));
      expect(await command("!agent create scout")).toContain("it was deleted");
      expect(await command("!agent list")).not.toContain("scout");
      const files = await stage.query("select 1 from files where share = 'agents' and path like '/scout/%'");
      expect(files.length).toBeGreaterThan(0);
    });
  });

  it("!audit says who changed what, from what, to what", async () => {
    const audit = await command("!audit 100");
    expect(audit).toContain(`${admin.id}: agent helper: \`paused\` → \`at work\``);
    expect(audit).toContain(`${admin.id}: permission of ${ann.id}: \`admin\` → \`chat\``);
    expect(audit.split("\n")[0]).toContain("agent scout: `@agent_scout:clevernet.test` → `deleted`");
  });

  describe("!reload", () => {
    it("puts what was changed in the file into force, and names what waits for a restart", async () => {
      await configure((config) => {
        config.permissions["@ben:clevernet.test"] = "use";
        config.agents.fresh = { owner: admin.id, wakeUpTimerSeconds: null };
        config.model.name = "another";
        config.files = { quotaMegabytes: 99 };
      });
      const told = await command("!reload");
      for (const line of [
        'model.name: "scripted" → "another"',
        "permission of @ben:clevernet.test: nothing → use",
        "agent fresh: made",
        "files: is different, and waits for a restart",
      ])
        expect(told).toContain(line);
      const room = await stage.directRoom(ann, "fresh");
      await expectPong(room);
      expect(await command("!status", { by: ann, where: room })).toContain("model: another");
      expect(await command(`!permission list`)).toContain(`\`${ann.id}\`: chat (@admin`);
    });

    it("tells nothing of a permission that was given and taken away by hand", async () => {
      await command("!permission set @mia:clevernet.test chat");
      await command("!permission remove @mia:clevernet.test");
      expect(await command("!reload")).not.toContain("mia");
    });

    it("refuses a file with mistakes, with the reason, and the last good one stays", async () => {
      const file = join(stage.homeserver.dir, "config.yaml");
      const good = await readFile(file, "utf8");
      await writeFile(file, good.replace("another", "third").replace("permissions:", "permisions:"));
      expect(await command("!reload")).toContain('unknown key "permisions", did you mean "permissions"?');
      await writeFile(file, good);
      expect(await command("!reload")).toBe("- files: is different, and waits for a restart");
      await expectPong(await stage.directRoom(ann));
    });

    it("an agent's file that cannot be used is told here, once, and the last good one stays", async () => {
      await stage.query(
        "update files set text_content = '{ \"mode\": \"fly\" }', version = version + 1 where path = '/fresh/agent.json'",
      );
      const room = await stage.directRoom(ann, "fresh");
      await expectPong(room);
      await expectPong(room);
      const refusals = (await admin.messages(control)).filter(({ body }) =>
        body.includes("fresh/agent.json is refused"),
      );
      expect(refusals.map(({ body }) => body.includes('found "fly"'))).toEqual([true]);
    });
  });

  it("!check looks at everything", async () => {
    stage.model.on("report_ready", { call: "report_ready", arguments: { ready: true } });
    expect(await command("!check")).toContain("✓ configuration");
  });

  it("who is named with none is ignored: nothing that they say wakes an agent, or is shown to it", async () => {
    const [ben, troll] = [await stage.user("ben"), await stage.user("troll")];
    const room = await stage.room(ann, [ben, troll], ["helper"]);
    await command(`!permission set ${troll.id} none`);
    const before = stage.model.requests.length;
    await troll.mention(room, stage.agentId(), "poison");
    stage.model.on("who is there", (request) => answer(request, "you are"));
    await ann.mention(room, stage.agentId(), "who is there");
    await ann.waitForMessage(room, ({ body }) => body === "you are");
    const requests = stage.model.requests.slice(before);
    expect(requests).toHaveLength(1);
    expect(JSON.stringify(requests[0]?.body.messages)).not.toContain("poison");
  });

  it("trouble with the model is told here once, whatever number of turns fail", async () => {
    stage.model.on("spend", { status: 402, error: "no credits left" });
    const room = await stage.directRoom(ann);
    for (const n of [1, 2]) {
      await ann.say(room, `spend ${n}`);
      const sorry = async () => (await ann.messages(room)).filter(isNotice).length === n;
      await eventually(sorry, { what: `apology ${n}` });
    }
    await admin.waitForMessage(control, ({ body }) => body.includes("no credits left"));
    const told = (await admin.messages(control)).filter(({ body }) => body.includes("no credits left"));
    expect(told.map(({ body }) => body.includes("The model is out of money"))).toEqual([true]);
  });

  it("20 invitations cause no model call, and the rooms of strangers stay empty", async () => {
    const stranger = await stage.user("stranger");
    await command(`!permission set ${stranger.id} none`);
    const before = stage.model.requests.length;
    const rooms = await Promise.all(
      [...Array(10)].flatMap(() => [stranger, ann].map((user) => user.createDirectRoom(stage.agentId()))),
    );
    for (const [index, room] of rooms.entries()) {
      const user = index % 2 === 0 ? stranger : ann;
      await user.waitForMembership(room, index % 2 === 0 ? "leave" : "join", stage.agentId());
    }
    expect(stage.model.requests.length).toBe(before);
  }, 60_000);

  it("without permissions nobody may do anything, admins included", async () => {
    const room = await stage.directRoom(ann);
    await stage.bridge.stop();
    await stage.query("delete from permissions");
    await configure((config) => {
      config.permissions = {};
    });
    await stage.bridge.start();
    const before = stage.model.requests.length;
    const asked = await admin.say(control, "!agent list").catch(() => undefined);
    await ann.say(room, "ping");
    expect((await ann.waitForMessage(room, isNotice)).body).toContain("has no permission to talk to me");
    const refused = await admin.createDirectRoom(stage.agentId());
    await admin.waitForMembership(refused, "leave", stage.agentId());
    const direct = await admin.createDirectRoom(bot);
    await admin.waitForMembership(direct, "leave", bot);
    expect(stage.model.requests.length).toBe(before);
    if (asked !== undefined)
      expect((await admin.messages(control).catch(() => [])).filter(isReplyTo(asked))).toEqual([]);
  }, 60_000);

  it("nothing is left unfinished, and nothing was sent twice or out of order", () => stage.check());
});
