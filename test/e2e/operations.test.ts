import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendsTo } from "../support/faults.ts";
import { isCard, isResult, obey, resultOf } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { userText } from "../support/scripted-model.ts";
import { answer, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

/** Limit for `!stop`, which takes its time on a busy machine; without it the operation would go on for a minute. */
const stopMs = 10_000;

describe("operations", () => {
  let stage: Stage;
  /** May decide, and stop; may read; may talk. */
  let ann: TestUser;
  let ben: TestUser;
  let cat: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      permissions: {
        "@admin:clevernet.test": "admin",
        "@ann:clevernet.test": "operate",
        "@ben:clevernet.test": "use",
        "@cat:clevernet.test": "chat",
      },
    });
    obey(stage.model);
    stage.model.on("think for ever", ["I think", { hangs: true }]);
    stage.model.on("what was that", (request) => answer(request, "that was that"));
    await stage.bridge.start();
    [ann, ben, cat] = await Promise.all([stage.user("ann"), stage.user("ben"), stage.user("cat")]);
  });
  afterAll(() => stage.strike());

  const answerTo = (id: string) => (message: Message) => JSON.stringify(message.content).includes(id);
  /** Gives a command; returns the bridge's answer. */
  const command = async (room: string, line: string, by = ann): Promise<string> =>
    (await by.waitForMessage(room, answerTo(await by.say(room, line)))).body;
  let calls = 0;
  /** Has the agent call a tool; the number under which it says the result. */
  const call = async (room: string, tool: string, input: object): Promise<number> => {
    await ann.mention(room, stage.agentId(), `do ${++calls} ${tool} ${JSON.stringify(input)}`);
    return calls;
  };
  /** A room of Ann and the agent with a file in it. */
  const roomWithFile = async () => {
    const room = await stage.directRoom(ann);
    const path = `rooms:/${room}/doomed.md`;
    await command(room, `!write ${path} a text`);
    return { room, path };
  };
  const states = async (room: string, table: "turns" | "operations" = "turns") =>
    (await stage.query<{ state: string }>(`select state from ${table} where room_id = '${room}' order by id`)).map(
      ({ state }) => state,
    );
  const parked = (room: string) =>
    eventually(async () => (await states(room)).at(-1) === "parked", { what: "the turn to be parked" });
  /** The newest operation of the room. */
  const newest = async (room: string) => {
    const [row] = await stage.query<{ id: number; tool: string; state: string }>(
      `select id, tool, state from operations where room_id = '${room}' and tool <> 'SendMessage' order by id desc limit 1`,
    );
    if (!row) throw new Error("there is no operation");
    return row;
  };
  const cards = async (room: string) => (await ann.messages(room)).filter(isCard);
  const approve = async (room: string) => command(room, `!approve ${(await newest(room)).id}`);

  it("of people and of the model are listed, with what became of them", async () => {
    const { room, path } = await roomWithFile();
    await resultOf(ann, room, await call(room, "FS_Read", { path }));
    await command(room, "!cat rooms:/nowhere/x.md");
    const list = (await command(room, "!operations")).split("\n");
    expect(list.map((line) => line.replace(/^- \*\*\d+\*\* /, "").replace(/, for .*/, ""))).toEqual([
      `✅ done: Write \`${path.split("/").at(-1)}\``,
      `✅ done: Read \`${path.split("/").at(-1)}\``,
      expect.stringMatching(/^✅ done: Say `.*RESULT.*` in this room$/),
      "❌ failed: Read `rooms:/nowhere/x.md`",
    ]);
    expect((await command(room, "!operations 1")).split("\n")).toHaveLength(1);
  });

  it("are shown whole, with input and result", async () => {
    const { room } = await roomWithFile();
    const shown = await command(room, `!operation ${(await newest(room)).id}`);
    for (const part of ["FS_WriteFile (create), ✅ done", "a command of @ann", '"content": "a text"', "Result:"])
      expect(shown).toContain(part);
  });

  it("are shown to nobody who may not read what their caller was shown", async () => {
    // The agent is shown Ann's other rooms as well, while she is alone with it.
    const { room, path } = await roomWithFile();
    await resultOf(ann, room, await call(room, "FS_Read", { path }));
    const { id } = await newest(room);
    await ann.invite(room, ben.id);
    await ben.join(room);
    await ann.waitForMembership(room, "join", ben.id);
    await eventually(async () => (await command(room, "!operations")).includes("not everybody here may read what"), {
      what: "the list to be closed",
    });
    expect(await command(room, `!operation ${id}`)).toContain("not everybody in this room may read it");
    const other = await stage.directRoom(ben);
    expect(await command(other, `!operation ${id}`, ben)).toContain(`There is no operation ${id} here`);
    expect(await command(await stage.directRoom(cat), `!operation ${id}`, cat)).toContain("you need the right to use");
  });

  describe("that were asked for", () => {
    it("wait while other turns go on, are run once when somebody approves, and then the turn goes on", async () => {
      const { room, path } = await roomWithFile();
      const number = await call(room, "FS_Delete", { path });
      await parked(room);
      expect(await command(room, "!status")).toMatch(/operation \d+ \(FS_Delete\) waits for approval, until 20/);
      await ann.say(room, "what was that");
      await ann.waitForMessage(room, ({ body }) => body === "that was that");
      await approve(room);
      expect(await resultOf(ann, room, number)).toContain("was deleted");
      expect(await newest(room)).toMatchObject({ tool: "FS_Delete", state: "done" });
      expect(await cards(room)).toHaveLength(1);
    });

    /** A bridge that is killed when it has come to where it writes into the table; what it was about to write is lost. */
    const killWhereItWrites = async (table: string, act: () => Promise<unknown>) => {
      const lock = await stage.lock(table);
      await act();
      await lock.reached();
      await stage.bridge.kill();
      await lock.endWaiting();
      await lock.release();
      await stage.bridge.start();
    };

    it.each<[string, string]>([
      ["before the question is written", "operations"],
      ["after the question", ""],
      ["after the decision", "turns"],
      ["when the operation has begun", "files"],
      ["when it is done and not recorded", "ephemeris"],
    ])(
      "%s: a bridge that is killed leaves one question, one execution, one answer",
      async (moment, table) => {
        const { room, path } = await roomWithFile();
        const isAsking = moment === "before the question is written";
        let number = 0;
        const ask = async () => {
          number = await call(room, "FS_Delete", { path });
        };
        if (isAsking) {
          // The thought is written first, and says nothing of operations.
          await killWhereItWrites(table, ask);
          await parked(room);
        } else {
          await ask();
          await parked(room);
        }
        const { id } = await newest(room);
        if (moment === "after the question") {
          await stage.bridge.kill();
          await stage.bridge.start();
        }
        if (isAsking || table === "") await approve(room);
        else if (moment === "after the decision") {
          await stage.bridge.kill();
          await stage.query(`with d as (update operations set decision = 'approved', decided_by = '${ann.id}', decided_at = now()
          where id = ${id} returning turn_id) update turns set state = 'ready' from d where id = d.turn_id`);
          await stage.bridge.start();
        } else await killWhereItWrites(table, () => ann.say(room, `!approve ${id}`));
        expect(await resultOf(ann, room, number)).toContain("was deleted");
        expect(await newest(room)).toEqual({ id, tool: "FS_Delete", state: "done" });
        expect(await cards(room)).toHaveLength(1);
        const results = (await ann.messages(room)).filter(isResult(number));
        expect(results).toHaveLength(1);
      },
      90_000,
    );

    it("by a person, and killed in the middle, are done by the next process, and the person is told", async () => {
      const { room, path } = await roomWithFile();
      let event = "";
      await killWhereItWrites("files", async () => {
        event = await ann.say(room, `!rm ${path}`);
      });
      expect((await ann.waitForMessage(room, answerTo(event))).body).toContain("was deleted");
      expect(await newest(room)).toMatchObject({ tool: "FS_Delete", state: "done" });
      expect(await command(room, `!cat ${path}`)).toContain("There is no file");
    });
  });

  it("whose card the homeserver refuses end with that, and the turn goes on at once", async () => {
    const { room, path } = await roomWithFile();
    const answer = { status: 403, body: { errcode: "M_FORBIDDEN", error: "no cards in here" } };
    const fault = stage.toHomeserver.respond(answer, { when: sendsTo(room), times: 1 });
    const number = await call(room, "FS_Delete", { path });
    await fault.reached();
    const result = await resultOf(ann, room, number);
    expect(result).toContain("FS_Delete was not carried out: the homeserver refuses to take the question to people");
    expect(result).toContain("no cards in here");
    const { id, ...operation } = await newest(room);
    expect(operation).toEqual({ tool: "FS_Delete", state: "refused" });
    expect(await command(room, `!approve ${id}`)).toContain(`Operation ${id} could not be asked for`);
    expect(await command(room, `!cat ${path}`)).toContain("a text");
    expect(await cards(room)).toEqual([]);
  });

  it("at work when the bridge is told to end are left to the next; what waits goes on waiting", async () => {
    const [working, waiting] = [await roomWithFile(), await roomWithFile()];
    const number = await call(working.room, "FS_Delete", { path: working.path });
    const other = await call(waiting.room, "FS_Delete", { path: waiting.path });
    await Promise.all([parked(working.room), parked(waiting.room)]);
    const lock = await stage.lock("files");
    await approve(working.room);
    await lock.reached();
    expect(await stage.bridge.stop()).toBe(0);
    await lock.endWaiting();
    await lock.release();
    await stage.bridge.start();
    expect(await resultOf(ann, working.room, number)).toContain("was deleted");
    await approve(waiting.room);
    expect(await resultOf(ann, waiting.room, other)).toContain("was deleted");
    expect(await cards(waiting.room)).toHaveLength(1);
  }, 90_000);

  describe("that are stopped", () => {
    const stop = async (room: string) => {
      const started = performance.now();
      expect(await command(room, "!stop")).toBe("helper was stopped.");
      await eventually(async () => !(await states(room)).includes("running"), { what: "the turn to end" });
      return performance.now() - started;
    };

    it("with the model in the middle of an answer end at once", async () => {
      const room = await stage.directRoom(ann);
      await ann.say(room, "think for ever");
      const request = await stage.model.request((one) => roomOf(one) === room);
      expect(await stop(room)).toBeLessThan(stopMs);
      await request.closed;
      expect(request.wasAborted).toBe(true);
    });

    it("with a tool at work end at once, are interrupted, and the agent sees that", async () => {
      const { room, path } = await roomWithFile();
      await call(room, "FS_Delete", { path });
      await parked(room);
      const lock = await stage.lock("files");
      await approve(room);
      await lock.reached();
      expect(await newest(room)).toMatchObject({ state: "running" });
      expect(await stop(room)).toBeLessThan(stopMs);
      await lock.release();
      expect(await newest(room)).toMatchObject({ state: "interrupted" });
      await ann.say(room, "what was that");
      await ann.waitForMessage(room, ({ body }) => body === "that was that");
      const seen = stage.model.requests.findLast((request) => roomOf(request) === room);
      expect(seen && userText(seen)).toContain(`Interrupted: stopped by ${ann.id}`);
    });

    it("while they wait for an approval end, too, and cannot be approved any more", async () => {
      const { room, path } = await roomWithFile();
      await call(room, "FS_Delete", { path });
      await parked(room);
      const { id } = await newest(room);
      expect(await stop(room)).toBeLessThan(stopMs);
      expect(await newest(room)).toMatchObject({ id, state: "interrupted" });
      await approve(room);
      expect(await command(room, `!cat ${path}`)).toContain("a text");
    });
  });

  it("leave nothing unfinished", () => stage.check());
});
