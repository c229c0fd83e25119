import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { insist } from "../support/chaos.ts";
import { isTransaction, nextTransaction, quiet, saidIn } from "../support/faults.ts";
import { eventually } from "../support/poll.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    stage.model.onEvery(answerEach);
    ann = await stage.user("ann");
  });
  beforeEach(async () => {
    if (!stage.bridge.isRunning) await stage.bridge.start();
  });
  afterAll(() => stage.strike());

  /** One transaction is under way; the rest waits in the homeserver's memory and dies with it. Then it comes back. */
  const forgets = async (
    what: () => Promise<unknown>,
    whileDead = () => {},
    onReturn: () => Promise<unknown> = async () => {},
  ) => {
    const push = stage.toBridge.hold({ when: isTransaction });
    await what();
    await push.reached();
    await eventually(() => stage.homeserver.hasQueuedAll(), { what: "the homeserver to have all in its queue" });
    await stage.homeserver.synapse.kill();
    await stage.toHomeserver.refuse();
    stage.toBridge.cut();
    push.lift();
    whileDead();
    await stage.homeserver.synapse.restart();
    await onReturn();
    await stage.toHomeserver.accept();
  };

  it("what a homeserver that died had not pushed yet is found in order within a minute of its return", async () => {
    const room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    const texts = Array.from({ length: 11 }, (_, index) => `eleven.${index + 1}`);
    await forgets(async () => {
      for (const text of texts) await ann.say(room, text);
    });
    await ann.waitForMessage(room, ({ body }) => body === answerTo("eleven.11"), { within: 60_000 });
    expect(await saidIn(ann, room)).toEqual([...texts, ...texts.map(answerTo)]);
    expect(stage.bridge.log).toContain("the sweep found events");
    await stage.check();
    const stored = await stage.query<{ body: string }>(
      `select content->>'body' as body from events where room_id = '${room}' and sender = '${ann.id}'
       and type = 'm.room.message' order by seq`,
    );
    expect(stored.map(({ body }) => body)).toEqual(texts);
  }, 120_000);

  const isSync = ({ path }: { path: string }) => path.includes("/sync");

  it("what it pushes after its return waits for what it had forgotten", async () => {
    const [room, other] = [await stage.directRoom(ann), await stage.directRoom(ann)];
    await quiet(stage.toBridge);
    const texts = ["forgotten", "forgotten too", "pushed"];
    const slow = stage.toHomeserver.delay(2_000, { when: isSync });
    await forgets(
      async () => {
        for (const text of texts) await ann.say(room, text);
      },
      () => stage.homeserver.unqueueNewest(),
      async () => {
        // It begins to push with whatever concerns us next.
        const pushed = nextTransaction(stage.toBridge);
        await ann.say(other, "elsewhere");
        await pushed();
      },
    );
    await ann.waitForMessage(room, ({ body }) => body === answerTo("pushed"), { within: 60_000 });
    slow.lift();
    expect(await saidIn(ann, room)).toEqual([...texts, ...texts.map(answerTo)]);
    await stage.check();
  }, 120_000);

  it("and waits ten seconds for a sweep that does not end (slow: as long)", async () => {
    const room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    const sweep = stage.toHomeserver.hold({ when: isSync });
    await forgets(() => ann.say(room, "under way"));
    await ann.say(room, "after its return");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("after its return"), { within: 30_000 });
    sweep.lift();
    await stage.check();
  }, 120_000);

  it("what it takes for delivered as soon as it pushes is found by one more sweep (slow: a quarter of a minute)", async () => {
    const room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    await stage.bridge.stop();
    const doorbell = stage.toBridge.hold({ when: isTransaction, times: 1 });
    await stage.bridge.start();
    await doorbell.reached();
    await quiet(stage.toHomeserver);
    const taken = stage.toBridge.respond({ status: 200 }, { when: isTransaction, times: 1 });
    await ann.say(room, "taken for delivered");
    doorbell.lift();
    await taken.reached();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("taken for delivered"), { within: 60_000 });
    await stage.check();
  }, 240_000);

  it("what it had forgotten is found behind whatever it pushes before the sweep has read", async () => {
    const room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    const say = (text: string, count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, n) => insist(ann, room, { body: `${text} ${n}`, msgtype: "m.notice" })),
      );
    const sweep = stage.toHomeserver.hold({ when: isSync });
    await forgets(
      () => say("forgotten", 120),
      () => stage.homeserver.unqueueNewest(),
      () => say("pushed", 130),
    );
    // Pushed events are stored, and routed after ten seconds.
    await ann.say(room, "the last");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("the last"), { within: 60_000 });
    sweep.lift();
    await expect
      .poll(() => stage.bridge.log, { timeout: 30_000 })
      .toMatch(/"found":1[0-9][0-9],.*the sweep found events/);
    await stage.check();
  }, 120_000);

  it("a room whose past an agent may not read any more keeps it from nothing that it missed elsewhere", async () => {
    const room = await stage.room(ann, [], ["helper"]);
    const other = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    await forgets(async () => {
      // More than one answer of the homeserver tells, so that the past has to be asked for.
      for (let n = 1; n <= 60; n++) await ann.say(room, `before ${n}`);
      await ann.client.ban(room, stage.agentId());
      await ann.say(other, "missed");
    });
    await ann.waitForMessage(other, ({ body }) => body === answerTo("missed"), { within: 60_000 });
    await stage.check();
  }, 120_000);

  it("a command in the control room is found as well", async () => {
    const admin = await stage.user("admin");
    const bot = "@clevernet:clevernet.test";
    const first = await admin.createDirectRoom(bot);
    const { body } = await admin.waitForMessage(first, (message) => message.body.includes("matrix.to"));
    const control = /!\S+$/.exec(body)?.[0] ?? "";
    await admin.join(control);
    await quiet(stage.toBridge);
    await forgets(async () => {
      // The one that is under way may come through.
      await admin.say(control, "!help agent");
      await admin.say(control, "!agent list");
    });
    await admin.waitForMessage(control, ({ body }) => body.includes("@agent_helper"), { within: 60_000 });
    await stage.check();
  }, 120_000);
});
