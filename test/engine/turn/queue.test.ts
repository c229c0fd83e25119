import { afterEach, describe, expect, it } from "vitest";
import type { AgentName, Conversation } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { TurnQueue } from "../../../src/engine/turn/queue.ts";
import { eventually } from "../../support/poll.ts";
import { newRoom } from "../../support/rows.ts";

describe("a conversation that has work", () => {
  const queues: TurnQueue[] = [];
  afterEach(async () => {
    for (const queue of queues.splice(0)) await queue.stop();
  });
  const newQueue = (concurrency: number, handler: (conversation: Conversation) => Promise<boolean>) => {
    const queue = new TurnQueue(silentLog);
    queue.work(concurrency, handler);
    queues.push(queue);
    return queue;
  };
  const newConversation = (): Conversation => ({ agent: "helper" as AgentName, roomId: newRoom() });

  it("runs once at a time; whatever comes while it runs is one that runs after it", async () => {
    const conversation = newConversation();
    const first = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    let runs = 0;
    const queue = newQueue(4, async () => {
      runs += 1;
      running += 1;
      most = Math.max(most, running);
      if (runs === 1) await first.promise;
      running -= 1;
      return true;
    });
    expect(queue.send(conversation)).toBe(true);
    expect(running).toBe(1);
    for (let i = 0; i < 5; i++) expect(queue.send(conversation)).toBe(true);
    first.resolve();
    await eventually(() => runs === 2 && running === 0, { what: "the second run" });
    expect(most).toBe(1);
    queue.send(conversation);
    await eventually(() => runs === 3, { what: "one that is sent later" });
  });

  it("runs beside others as far as there is room, and else when there is", async () => {
    const sent = [newConversation(), newConversation(), newConversation()];
    const seen: Conversation[] = [];
    const first = Promise.withResolvers<void>();
    let idle = 0;
    const queue = newQueue(2, async (conversation) => {
      seen.push(conversation);
      await first.promise;
      return true;
    });
    queue.onIdle(() => idle++);
    expect(sent.map((conversation) => queue.send(conversation))).toEqual([true, true, false]);
    expect(seen).toEqual(sent.slice(0, 2));
    expect([queue.room, queue.isIdle]).toEqual([0, false]);
    first.resolve();
    await eventually(() => seen.length === 3 && queue.room === 2, { what: "the third" });
    expect(seen).toEqual(sent);
    expect(idle).toBeGreaterThan(0);
  });

  it("runs again where it was left undone, or could not be begun", async () => {
    let runs = 0;
    const queue = newQueue(1, async () => {
      if (++runs === 1) throw new Error("no database");
      return runs > 2;
    });
    queue.send(newConversation());
    await eventually(() => runs === 3, { what: "the third run" });
  });

  it("does not run before the queue works, nor after it has stopped", async () => {
    const [before, after] = [newConversation(), newConversation()];
    const queue = new TurnQueue(silentLog);
    expect(queue.send(before)).toBe(false);
    const seen: Conversation[] = [];
    queue.work(1, async (conversation) => seen.push(conversation) > 0);
    await queue.stop();
    queue.send(after);
    expect(seen).toEqual([before]);
  });
});
