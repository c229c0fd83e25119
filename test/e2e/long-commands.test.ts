import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Reply, userText } from "../support/scripted-model.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

describe("a command that takes long", () => {
  let stage: Stage;
  /** May do everything; may read. */
  let ann: TestUser;
  let ben: TestUser;
  beforeAll(async () => {
    const permissions = { "@ann:clevernet.test": "operate", "@ben:clevernet.test": "use" };
    stage = await Stage.set({ database: "postgres", permissions });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    stage.model.on("ping", (request) => answer(request, "pong"));
  });
  afterAll(() => stage.strike());

  const isReplyTo = (id: string) => (message: Message) =>
    message.content.msgtype === "m.notice" && message.content["org.clevernet.command"] === id;
  const answersTo = async (room: string, id: string) =>
    (await ann.messages(room)).filter(isReplyTo(id)).map(({ body }) => body);
  const command = async (room: string, line: string, by = ann): Promise<string> =>
    (await ann.waitForMessage(room, isReplyTo(await by.say(room, line)))).body;
  const operations = (room: string) =>
    stage.query<{ tool: string; state: string }>(
      `select tool, state from operations where room_id = '${room}' and tool <> 'FS_WriteFile' and by = 'person' order by tool`,
    );
  let files = 0;
  /** A file in the room, and how the model answers whoever asks what it says: each time with the next of these. */
  const written = async (room: string, ...replies: readonly Reply[]) => {
    const [path, text] = [`rooms:/${room}/${++files}.md`, `long text ${files}.`];
    await command(room, `!write ${path} ${text}`);
    const asked = (request: Parameters<typeof userText>[0]) =>
      userText(request).includes(`${text}</content>`) && userText(request).includes("The question:");
    for (const reply of replies) stage.model.on(asked, reply, { times: 1 });
    const requests = () => stage.model.requests.filter(asked);
    return { path, requests, asked: () => stage.model.request(asked) };
  };

  it("holds up nothing that comes behind it, and is answered when it is done", async () => {
    const room = await stage.directRoom(ann);
    const held = Promise.withResolvers<void>();
    const { path, asked } = await written(room, [{ wait: held.promise }, "It is long."]);
    const id = await ann.say(room, `!summary ${path}`);
    await asked();
    const began = performance.now();
    expect(await command(room, "!stop nothing")).toContain("!stop");
    expect(performance.now() - began).toBeLessThan(2_000);
    await ann.say(room, "ping");
    await ann.waitForMessage(room, ({ body }) => body === "pong");
    expect(await answersTo(room, id)).toEqual([]);
    held.resolve();
    expect((await ann.waitForMessage(room, isReplyTo(id))).body).toContain("It is long.");
    await stage.check();
    expect(await answersTo(room, id)).toHaveLength(1);
    expect((await operations(room)).map(({ tool, state }) => `${tool} ${state}`)).toEqual(["FS_Summary done"]);
  });

  it("is ended by `!stop`, and says so", async () => {
    const room = await stage.directRoom(ann);
    const { path, asked } = await written(room, { hangs: true });
    const id = await ann.say(room, `!summary ${path}`);
    const request = await asked();
    expect(await command(room, "!stop")).toBe("helper was stopped.");
    await request.closed;
    expect(request.wasAborted).toBe(true);
    expect((await ann.waitForMessage(room, isReplyTo(id))).body).toContain(`Interrupted: stopped by ${ann.id}`);
    expect(await operations(room)).toEqual([{ tool: "FS_Summary", state: "interrupted" }]);
    expect(await command(room, "!stop")).toBe("helper is not at work here.");
  });

  it("is ended by nobody who may not operate, but for who gave it", async () => {
    const room = await stage.room(ann, [ben], ["helper"]);
    const [anns, bens] = [await written(room, { hangs: true }), await written(room, { hangs: true })];
    const id = await ann.say(room, `!summary ${anns.path}`);
    await anns.asked();
    expect(await command(room, "!stop", ben)).toContain("you need the right to operate");
    const own = await ben.say(room, `!summary ${bens.path}`);
    await bens.asked();
    expect(await command(room, "!stop", ben)).toBe("helper was stopped.");
    expect((await ann.waitForMessage(room, isReplyTo(own))).body).toContain("Interrupted");
    expect(await answersTo(room, id)).toEqual([]);
    expect(await command(room, "!stop")).toBe("helper was stopped.");
  });

  it("is refused while four of them are under way in the room", async () => {
    const room = await stage.directRoom(ann);
    const hang: Reply = { hangs: true };
    const { path, requests } = await written(room, hang, hang, hang, hang);
    for (let count = 1; count <= 4; count++) {
      await ann.say(room, `!summary ${path}`);
      await expect.poll(() => requests().length).toBe(count);
    }
    expect(await command(room, `!summary ${path}`)).toContain("4 commands are under way here");
    expect(await command(room, "!stop")).toBe("helper was stopped.");
    expect(await command(room, "!compute 6 * 7")).toContain("42");
  });

  it("is no computation without end for which others wait", async () => {
    const [rooms, other] = [
      await Promise.all([1, 2, 3, 4].map(() => stage.directRoom(ann))),
      await stage.directRoom(ben),
    ];
    for (const room of rooms) await ann.say(room, "!compute for(;;);");
    const began = performance.now();
    const id = await ben.say(other, "!compute 6 * 7");
    expect((await ben.waitForMessage(other, isReplyTo(id))).body).toContain("42");
    expect(performance.now() - began).toBeLessThan(4_000);
    for (const room of rooms) await ann.waitForMessage(room, ({ body }) => body.includes("it was stopped after"));
  });

  it.each(["kill", "stop"] as const)(
    "and whose process ends in it (%s) is carried out by the next, and answered once",
    async (end) => {
      const room = await stage.directRoom(ann);
      const { path, requests, asked } = await written(room, { hangs: true }, "It is long.");
      const id = await ann.say(room, `!summary ${path}`);
      await asked();
      expect(await command(room, "!compute 6 * 7")).toContain("42");
      const began = performance.now();
      await stage.bridge[end]();
      expect(performance.now() - began).toBeLessThan(6_000);
      await stage.bridge.start();
      expect((await ann.waitForMessage(room, isReplyTo(id))).body).toContain("It is long.");
      await stage.check();
      expect(await answersTo(room, id)).toHaveLength(1);
      expect(requests()).toHaveLength(2);
      expect((await operations(room)).map(({ tool, state }) => `${tool} ${state}`)).toEqual([
        "FS_Summary done",
        "compute done",
      ]);
    },
  );

  it("and was edited before its process died is not carried out as something else", async () => {
    const room = await stage.directRoom(ann);
    const { path, asked } = await written(room, { hangs: true });
    const id = await ann.say(room, `!summary ${path}`);
    await asked();
    await ann.edit(room, id, `!rm ${path}`);
    expect(await command(room, "!compute 6 * 7")).toContain("42");
    await stage.bridge.kill();
    await stage.bridge.start();
    expect((await ann.waitForMessage(room, isReplyTo(id))).body).toContain("was edited");
    expect(await command(room, `!cat ${path}`)).toContain("long text");
  });

  it("leaves nothing unfinished", () => stage.check());
});
