import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const kills = 6;
const texts = Array.from({ length: 10 }, (_, index) => `message ${index + 1}`);

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

  it("a bridge that is killed six times at random moments answers 40 messages in 4 rooms once each, in the order in which they arrive (a minute)", async () => {
    const rooms = await Promise.all([1, 2, 3, 4].map(() => stage.directRoom(ann)));
    const talking = Promise.all(
      rooms.map(async (room) => {
        for (const text of texts) {
          await sleep(Math.random() * 3_000);
          await ann.say(room, text);
        }
      }),
    );
    const moments: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const moment = Math.round(Math.random() * 2_500);
      moments.push(moment);
      await sleep(moment);
      await stage.bridge.kill();
      await stage.bridge.start();
    }
    await talking;
    for (const room of rooms) {
      const last = answerTo(texts.at(-1) ?? "");
      await ann.waitForMessage(room, ({ body }) => body === last, { within: 60_000 });
    }
    await stage.check();
    for (const room of rooms) {
      const messages = await ann.messages(room);
      const answers = messages.filter(({ sender }) => sender !== ann.id).map(({ body }) => body);
      // Synapse may leave a transaction behind while it recovers, and push it behind newer ones.
      const arrived = await stage.query<{ body: string; source: string }>(
        `select content->>'body' as body, source from events
         where room_id = '${room}' and sender = '${ann.id}' and type = 'm.room.message' order by seq`,
      );
      expect(arrived.map(({ body }) => body).sort(), "every message has arrived once").toEqual(texts.toSorted());
      const told = `killed after ${moments.join(", ")} ms; arrived ${JSON.stringify(arrived)}`;
      expect(answers, told).toEqual(arrived.map(({ body }) => answerTo(body)));
    }
  }, 240_000);
});
