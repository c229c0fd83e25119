import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shardOf } from "../../src/adapters/database/shards.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { sendsTo } from "../support/faults.ts";
import { eventually } from "../support/poll.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

describe("two processes that share an agent's device (slow: one of them is stopped for 20 s)", () => {
  let stage: Stage;
  let ann: SecretUser;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", processes: 2 });
    stage.model.onEvery(answerEach);
    for (const bridge of stage.bridges) await bridge.start();
    const shared = "shards where until > now() group by session having count(*) = 32";
    const look = async () => (await stage.query(`select 1 from ${shared}`)).length === 2;
    await eventually(look, { within: 60_000, what: "rooms to be shared" });
    ann = await createSecretUser(stage.homeserver, "ann");
  }, 120_000);
  afterAll(async () => {
    ann?.stop();
    await stage?.strike();
  });

  const holderOf = async (room: string) => {
    const [row] = await stage.query<{ name: string }>(`select name from shards where shard = ${shardOf(room)}`);
    return stage.bridges.find(({ url }) => row?.name.endsWith(`:${new URL(url).port}`));
  };

  it("one that wakes up late sends nothing that the other has not sent", async () => {
    const held = await stage.directRoom(ann);
    const late = await holderOf(held);
    let other: string;
    do other = await stage.directRoom(ann);
    while ((await holderOf(other)) !== late);
    const rooms = [held, other];
    const ask = (text: string) => Promise.all(rooms.map((room) => ann.say(room, text)));
    const answered = async (text: string) => {
      for (const room of rooms)
        await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 90_000 });
    };
    await ask("before");
    await answered("before");
    // In one room it has a message in hand, in the other it has not begun.
    const sending = stage.toHomeserver.hold({ when: sendsTo(held), times: 1 });
    const thinking = stage.toModel.hold();
    await ask("meanwhile");
    await thinking.reached();
    await eventually(() => thinking.struck.length >= 2, { what: "two turns" });
    late?.signal("SIGSTOP");
    const stopped = sleep(20_000);
    thinking.lift();
    // The other one takes over what it left.
    await ann.waitForMessage(other, ({ body }) => body === answerTo("meanwhile"), { within: 90_000 });
    await stopped;
    late?.signal("SIGCONT");
    sending.lift();
    await answered("meanwhile");
    await ask("after");
    await answered("after");
    await stage.check();
    for (const room of rooms) {
      const said = ann.heard(room).filter(({ sender }) => sender === stage.agentId());
      expect(said.map(({ body }) => body)).toEqual(["before", "meanwhile", "after"].map(answerTo));
    }
  }, 240_000);
});
