import { afterEach, describe, expect, it } from "vitest";
import { openQueue } from "../../src/database/open-queue.ts";
import type { Queue } from "../../src/database/queue.ts";
import type { Conversation } from "../../src/database/routing.ts";
import type { AgentName } from "../../src/lib/ids.ts";
import { silentLog } from "../../src/lib/log.ts";
import { onEachDatabase } from "../support/database.ts";
import { eventually } from "../support/poll.ts";
import { newRoom } from "../support/rows.ts";

onEachDatabase((database, kind) => {
  const queues: Queue[] = [];
  afterEach(async () => {
    for (const queue of queues.splice(0)) await queue.stop();
  });
  const newQueue = async () => {
    const queue = await openQueue(database(), silentLog);
    await queue.start();
    queues.push(queue);
    return queue;
  };
  const conversations = (count: number): Conversation[] =>
    Array.from({ length: count }, () => ({ agent: "helper" as AgentName, roomId: newRoom() }));

  describe("jobs of a conversation", () => {
    it("run one at a time; all that are sent while one runs are one that runs after it", async () => {
      const queue = await newQueue();
      const [conversation] = conversations(1) as [Conversation];
      const first = Promise.withResolvers<void>();
      let running = 0;
      let most = 0;
      let runs = 0;
      await queue.work(4, async () => {
        runs += 1;
        running += 1;
        most = Math.max(most, running);
        if (runs === 1) await first.promise;
        running -= 1;
        return true;
      });
      await queue.send(conversation);
      await eventually(() => running === 1, { what: "the first job to run" });
      for (let i = 0; i < 5; i++) await queue.send(conversation);
      first.resolve();
      await eventually(() => runs === 2 && running === 0, { what: "the second job to run" });
      expect(most).toBe(1);
      await queue.send(conversation);
      await eventually(() => runs === 3, { what: "a job that is sent later to run" });
    });

    it("carry the conversation, and run beside those of others", async () => {
      const queue = await newQueue();
      const sent = conversations(3);
      const seen: Conversation[] = [];
      const all = Promise.withResolvers<void>();
      await queue.work(3, async (conversation) => {
        seen.push(conversation);
        if (seen.length === 3) all.resolve();
        await all.promise;
        return true;
      });
      for (const conversation of sent) await queue.send(conversation);
      await eventually(() => seen.length === 3, { what: "three jobs at once" });
      expect(seen.map(({ roomId }) => roomId).sort()).toEqual(sent.map(({ roomId }) => roomId).sort());
    });
  });

  it.runIf(kind === "postgres")("a job whose process has died runs at once when it is released", async () => {
    const [conversation] = conversations(1) as [Conversation];
    const [dead, alive] = [await newQueue(), await newQueue()];
    const never = Promise.withResolvers<void>();
    let died = false;
    await dead.work(1, async () => {
      died = true;
      await never.promise;
      return true;
    });
    await dead.send(conversation);
    await eventually(() => died, { what: "the job to run in the process that dies" });
    const seen: Conversation[] = [];
    await alive.work(1, async (one) => seen.push(one) > 0);
    await alive.release([conversation]);
    await alive.send(conversation);
    await eventually(() => seen.length > 0, { what: "the job to run again" });
    expect(seen[0]).toEqual(conversation);
    never.resolve();
  });

  it("a job that a process leaves undone comes again", async () => {
    const [conversation] = conversations(1) as [Conversation];
    const queue = await newQueue();
    let runs = 0;
    await queue.work(1, async () => ++runs > 1);
    await queue.send(conversation);
    const look = () => queue.look() && runs > 1;
    await eventually(look, { what: "the job to run again" });
    expect(runs).toBe(2);
  });
});
