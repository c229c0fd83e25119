import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { isTransaction, quiet } from "../support/faults.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    stage.model.onEvery(answerEach);
    ann = await stage.user("ann");
    await stage.bridge.start();
  });
  afterAll(() => stage.strike());

  it("what a homeserver that died had not pushed yet is found in order within a minute of its return", async () => {
    const room = await stage.directRoom(ann);
    await quiet(stage.toBridge);
    const texts = Array.from({ length: 11 }, (_, index) => `eleven.${index + 1}`);
    // One transaction is under way; the rest waits in the homeserver's memory and dies with it.
    const push = stage.toBridge.hold({ when: isTransaction });
    await ann.say(room, texts[0] ?? "");
    await push.reached();
    for (const text of texts.slice(1)) await ann.say(room, text);
    await stage.homeserver.synapse.kill();
    await stage.toHomeserver.refuse();
    stage.toBridge.cut();
    push.lift();

    await stage.homeserver.synapse.restart();
    await stage.toHomeserver.accept();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("eleven.11"), { within: 60_000 });
    const said = (await ann.messages(room)).map(({ body }) => body);
    expect(said).toEqual([...texts, ...texts.map(answerTo)]);
    expect(stage.bridge.log).toContain("the sweep found events");
    await stage.check();
    const stored = await stage.query<{ body: string }>(
      `select content->>'body' as body from events where room_id = '${room}' and sender = '${ann.id}'
       and type = 'm.room.message' order by seq`,
    );
    expect(stored.map(({ body }) => body)).toEqual(texts);
  }, 120_000);
});
