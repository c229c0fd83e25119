import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blank } from "../../src/base/lib/repeats.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, type Step, say, toolName, userText } from "../support/scripted-model.ts";
import { roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("what an agent has made of a message that is redacted", () => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: { tools: ["core", "planner", "memory"] } },
      permissions: { "@ann:clevernet.test": "admin", "@*:clevernet.test": "operate" },
    });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  /** Tables in which a text stands. */
  const whereIs = async (text: string): Promise<string[]> => {
    const tables = await stage.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    const found = tables.map(async ({ name }) => {
      const rows = await stage.query(`select 1 from "${name}" t where to_jsonb(t)::text like '%${text}%' limit 1`);
      return rows.length > 0 ? [name] : [];
    });
    return (await Promise.all(found)).flat();
  };
  const gone = (text: string, within = 15_000) =>
    eventually(
      async () => {
        const left = await whereIs(text);
        if (left.length > 0) throw new Error(`it stands in ${left.join(", ")}`);
        return true;
      },
      { what: `"${text}" to be nowhere`, within },
    );

  const isSecond = ({ body }: ModelRequest) => body.messages.some(({ role }) => role === "tool");

  /** The agent repeats the words in a thought, a todo and a file, and answers. */
  const repeats = (secret: string, room: () => string) => (request: ModelRequest) => {
    if (isSecond(request)) return say(request, room(), "noted", { final: true });
    return [
      { reasoning: `Ann says: ${secret}. I keep that.` },
      { call: toolName(request, "todos_add"), arguments: { name: `remember: ${secret}` } },
      {
        call: toolName(request, "FS_WriteFile"),
        arguments: { path: `rooms:/${room()}/safe.md`, content: `# Safe\n\n${secret}\n\nThe end.` },
      },
      {
        call: toolName(request, "update_status"),
        arguments: { new_status_text: `keep this: ${secret}`, next_step: "nothing" },
      },
      { call: toolName(request, "log_activity"), arguments: { entry_type: "USER_FEEDBACK", content: secret } },
      { call: toolName(request, "set_fact"), arguments: { key: "secret", value: secret } },
    ] satisfies Step[];
  };

  it("is blanked wherever it is kept, and the next turn is shown nothing of it", async () => {
    let room = "";
    const secret = "turn the wheel to 4711 and pull";
    stage.model.on(
      secret,
      repeats(secret, () => room),
    );
    room = await stage.directRoom(ann);
    const told = await ann.say(room, secret);
    await ann.waitForMessage(room, ({ body }) => body === "noted");
    await eventually(async () => (await whereIs(secret)).includes("files"), { what: "the file to be written" });
    await eventually(
      async () =>
        (
          await stage.query(
            `select 1 from events e join agents a on a.thoughts_room = e.room_id where content::text like '%${secret}%'`,
          )
        ).length > 0,
      { what: "the thoughts room to be told" },
    );
    await ann.redact(room, told);
    await gone(secret);
    const [file] = await stage.query<{ text: string }>(
      "select text_content as text from files where path like '%safe.md'",
    );
    expect(file?.text).toBe(`# Safe\n\n${blank}\n\nThe end.`);
    stage.model.on("and now", (request) => say(request, room, "nothing", { final: true }));
    await ann.say(room, "and now");
    await ann.waitForMessage(room, ({ body }) => body === "nothing");
    const shown = userText(stage.model.requests.at(-1) as ModelRequest);
    expect(shown).toContain(blank);
    expect(shown).not.toContain("4711");
    await ann.say(room, "!operations 20");
    const list = await ann.waitForMessage(room, ({ body }) => body.includes("todos_add"));
    expect(list.body).not.toContain("4711");
  });

  it("is blanked where it was being thought when the message was redacted", async () => {
    const secret = "the number of the account is 0815";
    const redacted = Promise.withResolvers<void>();
    let room = "";
    stage.model.on(secret, (request) =>
      isSecond(request)
        ? say(request, room, "too late", { final: true })
        : [
            { reasoning: `So ${secret}` },
            { wait: redacted.promise },
            { call: toolName(request, "todos_add"), arguments: { name: secret } },
          ],
    );
    // Its next step is shown the room anew, without what woke it.
    const isNext = (request: ModelRequest) => roomOf(request) === room && userText(request).includes(blank);
    stage.model.on(isNext, (request) => say(request, room, "I see nothing", { final: true }));
    room = await stage.directRoom(ann);
    const before = stage.model.requests.length;
    const told = await ann.say(room, secret);
    await eventually(() => stage.model.requests.length > before, { what: "the model to be asked" });
    await ann.redact(room, told);
    await eventually(
      async () => (await stage.query(`select 1 from redactions where event_id = '${told}'`)).length > 0,
      {
        what: "the redaction to be routed",
      },
    );
    redacted.resolve();
    await ann.waitForMessage(room, ({ body }) => body === "I see nothing");
    expect(userText(stage.model.requests.at(-1) as ModelRequest)).not.toContain("0815");
    await gone(secret, 40_000);
  }, 60_000);

  it("is blanked after the process was killed in the middle of that (a minute)", async () => {
    let room = "";
    const secret = "push the lever down to 2342 twice";
    stage.model.on(
      secret,
      repeats(secret, () => room),
    );
    room = await stage.directRoom(ann);
    const told = await ann.say(room, secret);
    await ann.waitForMessage(room, ({ body }) => body === "noted");
    const lock = await stage.lock("schedules");
    await ann.redact(room, told);
    await lock.reached();
    await stage.bridge.kill();
    await lock.endWaiting();
    await lock.release();
    expect(await whereIs(secret)).toContain("ephemeris");
    await stage.bridge.start();
    await gone(secret, 60_000);
  }, 120_000);
});
