import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { shardCount, shardOf } from "../../src/adapters/database/shards.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { count, isTransaction, quiet } from "../support/faults.ts";
import { isCard, isResult, obey } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { newMessages } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const day = 24 * 3_600_000;

// Four are in test/faults/outage.test.ts.
describe("two processes on one database, whose wall clocks are two days apart", () => {
  let stage: Stage;
  let ann: TestUser;
  let admin: TestUser;
  let rooms: string[];
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", processes: 2, clockOffsets: [day, -day] });
    [ann, admin] = [await stage.user("ann"), await stage.user("admin")];
    obey(stage.model).on("wait", { hangs: true }, { times: 4 }).onEvery(answerEach);
    await both();
    rooms = [];
    for (const half of [0, 1, 0, 1]) rooms.push(await roomIn(half));
  }, 120_000);
  beforeEach(() => both());
  afterAll(() => stage.strike());

  /** Starts whichever does not run, and waits until each works on its half of the rooms. */
  const both = async () => {
    for (const bridge of stage.bridges) if (!bridge.isRunning) await bridge.start();
    const shared = "shards where until > now() group by session having count(*) = 32";
    const look = async () => (await stage.query(`select 1 from ${shared}`)).length === 2;
    await eventually(look, { within: 30_000, what: "rooms to be shared" });
  };

  /** A room in the shards of one process or the other: whoever holds some holds the first or the last of them. */
  const roomIn = async (half: number, make = () => stage.directRoom(ann)): Promise<string> => {
    for (;;) {
      const room = await make();
      if (Math.floor((shardOf(room) / shardCount) * 2) === half) return room;
    }
  };

  const talk = (texts: readonly string[], pauseMs: number) =>
    Promise.all(
      rooms.map(async (room) => {
        for (const text of texts) {
          await sleep(Math.random() * pauseMs);
          await ann.say(room, text);
        }
      }),
    );

  const answersAre = async (texts: readonly string[]) => {
    for (const room of rooms) {
      const last = answerTo(texts.at(-1) ?? "");
      await ann.waitForMessage(room, ({ body }) => body === last, { within: 60_000 });
    }
    await stage.check();
    for (const room of rooms) {
      const said = (await ann.messages(room)).filter(({ sender }) => sender !== ann.id).map(({ body }) => body);
      expect(said.filter((body) => texts.map(answerTo).includes(body))).toEqual(texts.map(answerTo));
    }
  };

  it("each event is answered once and in order, whichever process it comes to, and both work", async () => {
    const texts = ["one", "two", "three", "four", "five"];
    await talk(texts, 500);
    await answersAre(texts);
    expect(await stage.query("select runner from turns group by runner")).toHaveLength(2);
    expect(await count(stage, "(select event_id from events group by event_id having count(*) > 1) twice")).toBe(0);
  });

  it("turns of a process that is told to end go on in the other, and !stop ends a turn wherever it runs", async () => {
    const [first, second] = stage.bridges;
    await talk(["wait"], 0);
    const waiting = () =>
      stage.model.requests.filter(
        (request) => !request.wasAborted && newMessages(request).some(({ body }) => body === "wait"),
      );
    await eventually(() => waiting().length === 4, { what: "four turns" });
    const asked = waiting();
    // The second takes over all rooms, and the turns of the first, which are answered. When the first comes again it
    // gets those rooms whose turns wait in the second.
    expect(await first?.stop()).toBe(0);
    const answered = `outbox where content->>'body' = '${answerTo("wait")}'`;
    await eventually(async () => (await count(stage, answered)) === 2, { within: 30_000, what: "two answers" });
    await both();
    expect(await stage.query("select distinct runner from turns where state = 'running'")).toHaveLength(1);
    const requests = asked.filter(({ wasAborted }) => !wasAborted);
    expect(requests).toHaveLength(2);
    await talk(["!stop"], 0);
    await Promise.all(requests.map((request) => request.closed));
    await expect.poll(() => second?.log).toContain("the turn was stopped");
    await stage.check();
  });

  it("what was asked is decided and done once, also where the process that has asked is gone", async () => {
    const asked: string[] = [];
    for (const half of [0, 1]) {
      const room = await roomIn(half, () => stage.room(ann, [admin], ["helper"]));
      asked.push(room);
      await ann.mention(room, stage.agentId(), `do ${half} FS_Delete {"path":"rooms:/${room}/none.md"}`);
    }
    const cards = await Promise.all(asked.map((room) => admin.waitForMessage(room, isCard)));
    expect(await stage.bridge.stop()).toBe(0);
    await Promise.all(
      cards.flatMap(({ id, content }, index) => [
        admin.react(asked[index] ?? "", id, "✅"),
        admin.say(asked[index] ?? "", `!approve ${content["org.clevernet.operation"]}`),
        admin.react(asked[index] ?? "", id, "❌"),
      ]),
    );
    await Promise.all(asked.map((room, half) => ann.waitForMessage(room, isResult(half), { within: 60_000 })));
    await stage.check();
    for (const [half, room] of asked.entries()) {
      const messages = await ann.messages(room);
      expect([messages.filter(isCard).length, messages.filter(isResult(half)).length]).toEqual([1, 1]);
    }
    const decided = await stage.query("select state, decision from operations where tool = 'FS_Delete'");
    expect(decided).toHaveLength(2);
    for (const row of decided)
      expect([
        { state: "failed", decision: "approved" },
        { state: "refused", decision: "denied" },
      ]).toContainEqual(row);
  });

  it("one of them that is killed under load, and then the other, costs no answer", async () => {
    const texts = Array.from({ length: 8 }, (_, index) => `message ${index + 1}`);
    const talking = talk(texts, 3_000);
    for (const bridge of stage.bridges) {
      await sleep(2_000 + Math.random() * 2_000);
      await bridge.kill();
      await sleep(3_000);
      await bridge.start();
    }
    await talking;
    await answersAre(texts);
  }, 180_000);

  it("what the homeserver has forgotten is found by whoever takes over from a process that died", async () => {
    await both();
    const [room = ""] = rooms;
    const [row] = await stage.query<{ name: string }>(
      `select name from shards where shard = ${shardOf(stage.agentId())}`,
    );
    const holder = stage.bridges.find(({ url }) => row?.name.endsWith(`:${new URL(url).port}`));
    await quiet(stage.toBridge);
    const push = stage.toBridge.hold({ when: isTransaction });
    await ann.say(room, "under way");
    await push.reached();
    await ann.say(room, "forgotten");
    await holder?.kill();
    await stage.homeserver.synapse.kill();
    stage.toBridge.cut();
    push.lift();
    await stage.homeserver.synapse.restart();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("forgotten"), { within: 60_000 });
  }, 120_000);

  describe("!reload", () => {
    const bot = "@clevernet:clevernet.test";
    let control: string;
    /** Their configuration files, and the names by which they are known; the first takes the commands. */
    let processes: { file: string; name: string }[];
    beforeAll(async () => {
      await both();
      const room = await admin.createDirectRoom(bot);
      const { body } = await admin.waitForMessage(room, ({ body }) => body.includes("matrix.to"));
      control = /!\S+$/.exec(body)?.[0] ?? "";
      await admin.join(control);
      const [first] = await stage.query<{ name: string }>(`select name from shards where shard = ${shardOf(control)}`);
      processes = stage.bridges
        .map(({ url }, index) => {
          const name = `${hostname()}:${new URL(url).port}`;
          return { file: join(stage.homeserver.dir, `config${index || ""}.yaml`), name };
        })
        .toSorted((one, other) => Number(other.name === first?.name) - Number(one.name === first?.name));
    });

    const edit = async (file: string, before: string, after: string) => {
      const text = await readFile(file, "utf8");
      expect(text).toContain(before);
      await writeFile(file, text.replace(before, after));
    };
    const command = async (line: string, user = admin, room = control): Promise<string> => {
      const id = await user.say(room, line);
      const isAnswer = ({ content }: Message) => content["org.clevernet.command"] === id;
      return (await user.waitForMessage(room, isAnswer)).body;
    };
    const notices = async () =>
      (await admin.messages(control)).map(({ body }) => body).filter((body) => body.startsWith("The process "));

    const modelsAre = async (name: string) => {
      for (const room of rooms) {
        const look = async () => (await command("!status", ann, room)).includes(`model: ${name}`);
        await eventually(look, { what: `the model ${name}` });
      }
    };

    it("is heard by every process, and those that have read the same say nothing", async () => {
      for (const { file } of processes) await edit(file, "name: scripted", "name: second");
      expect(await command("!reload")).toBe('- model.name: "scripted" → "second"');
      await modelsAre("second");
      expect(await notices()).toEqual([]);
    });

    it("of a process that has read something else, or may not go on with it, its name and that are said", async () => {
      const [, { file, name } = { file: "", name: "" }] = processes;
      await edit(file, "name: second", "name: third");
      expect(await command("!reload")).toBe("Nothing is different.");
      await eventually(async () => (await notices()).length === 1, { what: "a notice" });
      await edit(file, "permissions:", "permisions:");
      expect(await command("!reload")).toBe("Nothing is different.");
      await eventually(async () => (await notices()).length === 2, { what: "another notice" });
      expect(await notices()).toEqual([
        `The process ${name} has read another configuration, which is not the same in: model.`,
        expect.stringMatching(
          new RegExp(`^The process ${name} goes on with the last good .*unknown key "permisions"`, "s"),
        ),
      ]);
      await edit(file, "permisions:", "permissions:");
      await edit(file, "name: third", "name: second");
      await command("!reload");
      await modelsAre("second");
      expect(await notices()).toHaveLength(2);
    });

    it("that is refused where it was given is heard by nobody", async () => {
      const [first = "", second = ""] = processes.map(({ file }) => file);
      const before = await notices();
      await edit(first, "permissions:", "permisions:");
      await edit(second, "name: second", "name: third");
      expect(await command("!reload")).toContain('unknown key "permisions"');
      await edit(first, "permisions:", "permissions:");
      await modelsAre("second");
      await edit(second, "name: third", "name: second");
      await stage.check();
      expect(await notices()).toEqual(before);
    });
  });

  it("a timer that runs out wakes once", async () => {
    await stage.query("update agents set wake_up_timer_seconds = 60, last_turn_at = now() - interval '1 hour'");
    const timed = () => count(stage, "turns where reason = 'timer'");
    await eventually(async () => (await timed()) > 0, { within: 40_000, what: "the timer" });
    await stage.query("update agents set wake_up_timer_seconds = null");
    await stage.check();
    expect(await timed()).toBe(1);
  });
});
