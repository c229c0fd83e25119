import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { all } from "../support/elements.ts";
import { sendsTo } from "../support/faults.ts";
import { downloadAs, drawImage, upload } from "../support/media.ts";
import { growth } from "../support/memory.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, toolName } from "../support/scripted-model.ts";
import { answer, callsOf, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

type Fields = Readonly<Record<string, unknown>>;

describe("files in a room", () => {
  let stage: Stage;
  let ann: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", permissions: { "@*:clevernet.test": "operate" } });
    await stage.bridge.start();
    ann = await stage.user("ann");
    room = await stage.directRoom(ann);
  });
  afterAll(() => stage.strike());

  /** Sends a file as clients do. @returns the event's id */
  const send = async (content: Buffer | ReadableStream, fields: Fields): Promise<string> => {
    const url = await upload(stage.homeserver, ann, content);
    return ann.send(room, "m.room.message", { msgtype: "m.file", url, info: { mimetype: "image/png" }, ...fields });
  };
  const requests = () => stage.model.requests.filter((request) => roomOf(request) === room);
  /** The number under which agents are shown an event. */
  const numberOf = async (eventId: string): Promise<string> => {
    const [row] = await stage.query<{ number: number }>(`select number from events where event_id = '${eventId}'`);
    return String(row?.number);
  };
  const shownIn = async (request: ModelRequest | undefined, eventId: string) => {
    const number = await numberOf(eventId);
    const messages = request ? all(roomSeen(request, room), "message") : [];
    return messages.find(({ attributes }) => attributes.id === number)?.attributes;
  };
  /** The message as the model was shown it last. */
  const shown = async (eventId: string) => {
    const seen = await Promise.all(requests().map((request) => shownIn(request, eventId)));
    return seen.findLast((attributes) => attributes !== undefined);
  };
  const imagesOf = (request: ModelRequest | undefined): string[] => request?.body.messages.at(-1)?.images ?? [];
  const answered = (text: string) => ann.waitForMessage(room, ({ body }) => body === text);
  /** Asks the agent something, which calls a tool once and then answers `done N`. @returns the result that it was shown */
  let asked = 0;
  const have = async (tool: string, input: Fields): Promise<string> => {
    const question = `have ${++asked}.`;
    stage.model.on(question, (request) => {
      if (callsOf(request).length > 0) return answer(request, `done ${asked}`);
      return { call: toolName(request, tool), arguments: input };
    });
    await ann.say(room, question);
    await answered(`done ${asked}`);
    return callsOf(requests().at(-1) as ModelRequest)[0]?.result ?? "";
  };
  const sentFile = (name: string): Promise<Message> =>
    ann.waitForMessage(room, ({ sender, content }) => sender === stage.agentId() && content.filename === name);

  it("are kept, and shown with path, type and size as they are; a model sees images", async () => {
    const image = await drawImage(300, 200);
    stage.model.on("cat.png", (request) => answer(request, "a cat"));
    const event = await send(image, { msgtype: "m.image", body: "cat.png", info: { mimetype: "text/html", w: 5 } });
    await answered("a cat");
    expect(await shown(event)).toMatchObject({
      path: expect.stringMatching(/^rooms:\/!.*\/media\/cat-[a-z0-9]+\.png$/),
      contentType: "image/png",
      bytes: String(image.length),
      width: "300",
      height: "200",
    });
    expect(imagesOf(requests().at(-1))).toEqual([`data:image/png;base64,${image.toString("base64")}`]);
  });

  it("are shown to the model again only where somebody answers to them", async () => {
    const seen = requests().flatMap((request) => all(roomSeen(request, room), "message"));
    const image = seen.find(({ attributes }) => attributes.messageType === "m.image")?.attributes;
    stage.model.on("nice weather", (request) => answer(request, "yes"));
    await ann.say(room, "nice weather");
    await answered("yes");
    expect(imagesOf(requests().at(-1))).toEqual([]);
    stage.model.on("which colour", (request) => answer(request, "grey"));
    const [row] = await stage.query<{ eventId: string }>(
      `select event_id as "eventId" from events where room_id = '${room}' and number = ${image?.id}`,
    );
    await ann.reply(room, String(row?.eventId), "which colour?");
    await answered("grey");
    expect(imagesOf(requests().at(-1))).toHaveLength(1);
  });

  it("that are text can be read; a caption is not the name", async () => {
    stage.model.on("my notes", (request) => answer(request, "noted"));
    const event = await send(Buffer.from("line one\nline two\n"), { body: "my notes", filename: "notes.md" });
    await answered("noted");
    expect(await shown(event)).toMatchObject({ fileName: "notes.md", contentType: "text/markdown", bytes: "18" });
    expect(await have("FS_Read", { path: (await shown(event))?.path })).toContain("line two");
  });

  it("go with the message: a redaction removes them", async () => {
    stage.model.on("secret.txt", (request) => answer(request, "hush"));
    const event = await send(Buffer.from("the password"), { body: "secret.txt" });
    await answered("hush");
    const path = (await shown(event))?.path;
    await ann.redact(room, event);
    await eventually(
      async () => (await stage.query("select 1 from files where text_content = 'the password'")).length === 0,
      {
        what: "the file to be gone",
      },
    );
    expect(await have("FS_Read", { path })).toMatch(/not carried out|no file|not there/);
    expect(await shownIn(requests().at(-1), event)).toBeUndefined();
  });

  it("of 100 MB are refused with their size, and take no memory", async () => {
    stage.model.on("large.bin", (request) => answer(request, "too large"));
    let event = "";
    const grown = await growth(stage.bridge.pid, async () => {
      event = await send(Buffer.alloc(100 * 1_048_576), { body: "large.bin" });
      await answered("too large");
    });
    expect((await shown(event))?.missing).toMatch(/104857600 bytes/);
    expect(await shown(event)).not.toHaveProperty("path");
    expect(grown).toBeLessThan(40);
  });

  it("that do not exist are said to be missing", async () => {
    stage.model.on("nowhere.png", (request) => answer(request, "I see nothing"));
    const event = await ann.send(room, "m.room.message", {
      msgtype: "m.image",
      body: "nowhere.png",
      url: "mxc://clevernet.test/nowhere",
    });
    await answered("I see nothing");
    expect((await shown(event))?.missing).toMatch(/homeserver does not give it: 404/);
  });

  it("are sent by agents: an image with its size and a thumbnail", async () => {
    const image = await drawImage(1_000, 900);
    stage.model.on("big.png", (request) => answer(request, "thanks"));
    const event = await send(image, { msgtype: "m.image", body: "big.png" });
    await answered("thanks");
    await have("SendFile", { path: (await shown(event))?.path, caption: "here it is" });
    const name =
      String((await shown(event))?.path)
        .split("/")
        .at(-1) ?? "";
    const { content } = await sentFile(name);
    expect(content).toMatchObject({
      msgtype: "m.image",
      body: "here it is",
      info: { mimetype: "image/png", size: image.length, w: 1_000, h: 900, thumbnail_info: { w: 667, h: 600 } },
    });
    expect(await downloadAs(stage.homeserver, ann, content.url)).toEqual(image);
    const { thumbnail_url: thumbnail } = content.info as Record<string, unknown>;
    expect((await downloadAs(stage.homeserver, ann, thumbnail)).length).toBeLessThan(image.length);
  });

  it("are sent by a person's command", async () => {
    const [file] = await stage.query<{ path: string }>("select path from files where path like '%/notes-%'");
    await ann.say(room, `!send rooms:${file?.path} as you wished`);
    const { content } = await sentFile(String(file?.path.split("/").at(-1)));
    expect(content).toMatchObject({ msgtype: "m.file", body: "as you wished", info: { mimetype: "text/markdown" } });
  });

  it("are sent once, though the bridge dies between the upload and the message", async () => {
    const [file] = await stage.query<{ path: string }>("select path from files where path like '%/notes-%'");
    const held = stage.toHomeserver.hold({ when: sendsTo(room) });
    await ann.say(room, `!send rooms:${file?.path} once`);
    await held.reached();
    await stage.bridge.kill();
    held.lift();
    await stage.bridge.start();
    const { content } = await ann.waitForMessage(room, ({ body }) => body === "once");
    expect(String(await downloadAs(stage.homeserver, ann, content.url))).toContain("line one");
    const copies = (await ann.messages(room)).filter(({ body }) => body === "once");
    expect(copies).toHaveLength(1);
  });

  it("a reaction stands below the message, once", async () => {
    const event = await ann.say(room, "have 99.");
    stage.model.on("have 99.", (request) =>
      callsOf(request).length > 0
        ? answer(request, "reacted")
        : { call: toolName(request, "React"), arguments: { eventId: event, key: "👍" } },
    );
    await answered("reacted");
    const path = `v1/rooms/${encodeURIComponent(room)}/relations/${encodeURIComponent(event)}/m.annotation`;
    const { chunk } = (await ann.api("GET", path)) as { chunk: { sender: string; content: Fields }[] };
    expect(chunk).toMatchObject([{ sender: stage.agentId(), content: { "m.relates_to": { key: "👍" } } }]);
  });

  it("a person's reaction to the agent is shown to it, and wakes nobody", async () => {
    const { id } = await answered("reacted");
    const before = requests().length;
    await ann.react(room, id, "🎉");
    stage.model.on("and now?", (request) => answer(request, "thank you"));
    await ann.say(room, "and now?");
    await answered("thank you");
    expect(requests()).toHaveLength(before + 1);
    const events = all(roomSeen(requests().at(-1) as ModelRequest, room), "roomEvent");
    expect(events.map(({ attributes }) => attributes)).toContainEqual(
      expect.objectContaining({ key: "🎉", relatesTo: await numberOf(id), sender: ann.id }),
    );
  });

  it("people see that the agent has read what it does not answer at once", async () => {
    const gate = Promise.withResolvers<void>();
    stage.model.on("take your time", async (request) => {
      await gate.promise;
      return answer(request, "there");
    });
    const event = await ann.say(room, "take your time");
    const client = ann.client;
    await eventually(() => client.getRoom(room)?.getEventReadUpTo(stage.agentId(), true) === event, {
      what: "the receipt of the agent",
    });
    gate.resolve();
    await answered("there");
  });

  it("leave nothing behind", () => stage.check());
});
