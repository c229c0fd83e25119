import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, say, toolName, userText } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("!show turn", () => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", permissions: { "@*:clevernet.test": "use" } });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
  });
  afterAll(() => stage.strike());

  const fileOf = async (user: TestUser, room: string): Promise<string> => {
    const { content } = await user.waitForMessage(room, (message) => message.content.msgtype === "m.file");
    const url = user.client.mxcUrlToHttp(String(content.url), undefined, undefined, undefined, true, true, true);
    const response = await fetch(String(url), { headers: { authorization: `Bearer ${user.credentials.accessToken}` } });
    return response.text();
  };

  it("gives exactly what the model was sent, as a file: also what was appended to it, and its tools", async () => {
    const look = (request: ModelRequest) => ({ call: toolName(request, "FS_Tree"), arguments: { path: "system:/" } });
    stage.model.on("what do you see", (request) =>
      request.body.messages.some(({ role }) => role === "tool")
        ? say(request, room, "everything", { final: true })
        : look(request),
    );
    const room = await stage.directRoom(ann);
    await ann.say(room, "what do you see");
    await ann.waitForMessage(room, ({ body }) => body === "everything");
    await ann.say(room, "!show turn");
    const sent = stage.model.requests.filter((request) => userText(request).includes("what do you see"));
    expect(sent).toHaveLength(2);
    const file = await fileOf(ann, room);
    for (const { content } of sent.flatMap(({ body }) => body.messages)) expect(file).toContain(content ?? "");
    expect(file).toMatch(
      /^# Step 0\n\nscripted: 1,000 tokens read, 10 written\nof those read: tools \d+, system \d+, user \d+\n/,
    );
    const [, steps, tools = ""] = /^# Tools of step (.*)\n\n([\s\S]*)$/m.exec(file) ?? [];
    expect(steps).toMatch(/^0, \d+$/);
    const offered = JSON.parse(tools) as { name: string }[];
    expect(offered.map(({ name }) => name)).toEqual(sent[0]?.body.tools.map((tool) => tool.function.name));
    expect(offered).toEqual(sent[0]?.body.tools.map((tool) => expect.objectContaining(tool.function)));
  });

  it("and !usage tell how far an answer is while it comes", async () => {
    const rest = Promise.withResolvers<void>();
    stage.model.on("think long", async function* (request: ModelRequest) {
      yield { text: "x".repeat(400) };
      yield { wait: rest.promise };
      yield say(request, room, "thought", { final: true });
    });
    const room = await stage.directRoom(ann);
    await ann.say(room, "think long");
    await stage.model.request("think long");
    const line = /helper asks scripted, for \d+ s: about [\d,]+ tokens read, about 100 written so far/;
    const isTold = async () => {
      await ann.say(room, "!usage");
      return (await ann.messages(room)).some(({ body }) => line.test(body));
    };
    await eventually(isTold, { what: "the answer under way in !usage" });
    const renders = `select 1 from renders r join turns t on t.id = r.turn_id where t.room_id = '${room}'`;
    await eventually(async () => (await stage.query(renders)).length > 0, { what: "the render to be kept" });
    await ann.say(room, "!show turn");
    expect(await fileOf(ann, room)).toMatch(line);
    rest.resolve();
    await ann.waitForMessage(room, ({ body }) => body === "thought");
    await ann.say(room, "!usage");
    await ann.waitForMessage(room, ({ body }) => /; prompts: tools \d+ %, \w+ \d+ %/.test(body) && !line.test(body));
  });

  it("refuses where somebody in the room may not read all of it", async () => {
    stage.model.on("remember this", (request) => say(request, shared, "I will", { final: true }));
    const shared = await stage.room(ann, [], ["helper"]);
    await ann.say(shared, "remember this");
    await ann.waitForMessage(shared, ({ body }) => body === "I will");
    await ann.invite(shared, ben.id);
    await ben.join(shared);
    await ann.waitForMembership(shared, "join", ben.id);
    await ann.say(shared, "!show turn");
    await ann.waitForMessage(shared, ({ body }) => body.includes("not everybody in this room may read"));
  });

  it("is no file of the room, and is taken back with an event that it shows", async () => {
    stage.model.on("the safe opens with", (request) => say(request, room, "noted", { final: true }));
    const room = await stage.directRoom(ann);
    const told = await ann.say(room, "the safe opens with 4711 and 0815");
    await ann.waitForMessage(room, ({ body }) => body === "noted");
    await ann.say(room, "!show turn");
    const shown = await ann.waitForMessage(room, ({ content }) => content.msgtype === "m.file");
    expect(await fileOf(ann, room)).toContain("4711");
    const event = await eventually(
      async () => {
        const routed = `select media from events where event_id = '${shown.id}' and routed_at is not null and media_after is null`;
        return (await stage.query<{ media: unknown }>(routed))[0];
      },
      { what: "the attachment to be routed" },
    );
    expect(event).toMatchObject({ media: { state: "missing" } });
    expect(await stage.query("select path from files where path like '%turn-%'")).toEqual([]);
    await ann.redact(room, told);
    const now = async () => (await ann.messages(room)).find(({ id }) => id === shown.id)?.content;
    await eventually(async () => (await now())?.url === undefined, { what: "the attachment to be taken back" });
    expect(await stage.query("select 1 from outbox where content::text like '%4711%'")).toEqual([]);
    await ann.say(room, "!show turn");
    const again = await ann.waitForMessage(room, ({ content, id }) => content.msgtype === "m.file" && id !== shown.id);
    expect(again.body).toBe(shown.body);
    expect(
      await stage.query(
        "select 1 from outbox where content::text like '%(removed, since something in it was redacted)%'",
      ),
    ).not.toEqual([]);
  });
});
