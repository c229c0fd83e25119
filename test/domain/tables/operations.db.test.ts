import { describe, expect, it } from "vitest";
import type { Conversation, UserId } from "../../../src/base/lib/ids.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import type { OperationRecord } from "../../../src/domain/tables/operation-record.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { type ClaimedTurn, Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, settleEvent, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  const operations = () => new Operations(database());
  const turns = () => new Turns(database(), "a test");
  const newConversation = async (): Promise<Conversation> => ({
    agent: (await addAgent(database())).name,
    roomId: newRoom(),
  });
  const withKey = async (key: string) => (await operations().newest(undefined, 50)).find((one) => one.key === key);
  const claim = async (conversation: Conversation, most = 4): Promise<ClaimedTurn> => {
    const turn = await turns().claim(conversation, most);
    if (typeof turn === "string") throw new Error(`the conversation is ${turn}`);
    return turn;
  };
  const opened = async (conversation?: Conversation) => {
    const where = conversation ?? (await newConversation());
    await wake(database(), where);
    return { conversation: where, turn: await claim(where) };
  };
  /** A turn that waits for a decision. */
  const asked = async (conversation?: Conversation) => {
    const { conversation: where, turn } = await opened(conversation);
    const { id } = await operations().reserve(where);
    const question = { id, askedBecause: "why not", expiresAt: new Date(), cardRoom: where.roomId, cardKey: newKey() };
    const operation: OperationRecord = { ...call({ n: 0 }), ...question, state: "asked" };
    await turns().commit(turn, { n: 0, name: "call x", result: {}, operations: [operation], asks: true });
    return { conversation: where, turn, id, key: operation.key };
  };
  const by = { userId: "@judge:test" as UserId };
  const stateOf = async ({ id }: { id: number }) => {
    const [row] = await database().sql<{ state: string }[]>`select state from turns where id = ${id}`;
    return row?.state;
  };

  describe("the record", () => {
    it("is written with the step, for what the turn has been shown", async () => {
      const { conversation, turn } = await opened();
      const operation: OperationRecord = {
        ...call({ n: 0, callId: "fc1.1", todo: 3 }),
        state: "done",
        result: "a result",
      };
      const step = { n: 0, name: "call x", result: {}, sources: [turn.roomId], taint: ["@stranger:test"] };
      await turns().commit(turn, { ...step, operations: [operation] });
      expect(await withKey(operation.key)).toMatchObject({
        ...call({ key: operation.key, n: 0, callId: "fc1.1", todo: 3 }),
        ...conversation,
        by: "model",
        turnId: turn.id,
        state: "done",
        result: "a result",
        sources: [turn.roomId],
        taint: ["@stranger:test"],
        endedAt: expect.any(Date),
      });
    });

    it("that was begun is brought up to date, and uses up no second id", async () => {
      const { turn } = await opened();
      const first = call({ n: 0 });
      await turns().begin(turn, 0, "call x", { ...first, state: "running" });
      const begun = await withKey(first.key);
      await turns().commit(turn, { n: 0, name: "call x", result: {}, operations: [{ key: first.key, state: "done" }] });
      const done = await withKey(first.key);
      expect(done).toMatchObject({ id: begun?.id, state: "done", startedAt: begun?.startedAt, input: first.input });
      const next = call({ n: 1 });
      await turns().commit(turn, { n: 1, name: "call x", result: {}, operations: [{ ...next, state: "done" }] });
      expect((await withKey(next.key))?.id).toBe((begun?.id ?? 0) + 1);
    });

    it("written twice is one", async () => {
      const { turn } = await opened();
      const step = { n: 0, name: "call x", result: {}, operations: [{ ...call({ n: 0 }), state: "done" as const }] };
      await turns().commit(turn, step);
      await turns().commit(turn, {
        ...step,
        operations: step.operations.map((one) => ({ ...one, state: "failed" as const })),
      });
      expect(await withKey(step.operations[0]?.key ?? "")).toMatchObject({ state: "done" });
    });

    it("of a turn that somebody else has taken over is not written", async () => {
      const { conversation, turn } = await opened();
      await claim(conversation);
      const operation = { ...call({ n: 0 }), state: "running" as const };
      await expect(turns().begin(turn, 0, "call x", operation)).rejects.toThrow("no longer ours");
      expect(await withKey(operation.key)).toBeUndefined();
    });

    it("of a person's command is written when it begins, and with what follows from it", async () => {
      const conversation = await newConversation();
      const first = { ...call(), state: "running" as const };
      expect(await operations().withKey(first.key)).toBeUndefined();
      expect(await operations().begin(first, conversation)).toBe(true);
      expect(await operations().begin(first, conversation)).toBe(false);
      expect(await operations().withKey(first.key)).toBeDefined();
      expect(await withKey(first.key)).toMatchObject({ state: "running" });
      const sources = [conversation.roomId, newRoom()];
      const operation = { key: first.key, state: "done" as const, agent: conversation.agent, sources, audience: [] };
      await settleEvent(database(), { roomId: conversation.roomId }, { operation });
      expect(await withKey(first.key)).toMatchObject({
        by: "person",
        state: "done",
        turnId: null,
        sources,
      });
      expect(await operations().begin(first, conversation)).toBe(false);
    });
  });

  describe("asking", () => {
    it("parks the turn with its question, and says who waits", async () => {
      const { conversation, turn, id } = await asked();
      expect(await stateOf(turn)).toBe("parked");
      expect(await operations().find(id)).toMatchObject({ state: "asked", askedBecause: "why not", turnId: turn.id });
      expect((await operations().open(conversation)).map((one) => one.id)).toEqual([id]);
      const { parked, expiresAt } = await operations().reserve(conversation);
      expect(parked).toBe(1);
      expect(Math.round((expiresAt.getTime() - Date.now()) / 3_600_000)).toBe(24);
      expect(await turns().findWaiting(conversation.agent)).toEqual([]);
      expect(await turns().claim(conversation, 4)).toBe("idle");
    });

    it("leaves a step that waits, and not one that is done", async () => {
      const { turn } = await asked();
      expect(await turns().journal(turn)).toMatchObject([{ n: 0, state: "asked" }]);
    });

    it("lets the conversation's next turn begin, and does not count as work", async () => {
      const { conversation } = await asked();
      await asked(conversation);
      const { turn } = await opened(conversation);
      expect(await stateOf(turn)).toBe("running");
      const other = { ...conversation, roomId: newRoom() };
      await wake(database(), other);
      expect(await claim(other, 2)).toMatchObject(other);
    });
  });

  describe("a decision", () => {
    it("counts once, and wakes the conversation", async () => {
      const { conversation, turn, id } = await asked();
      const both = await Promise.all([
        operations().decide(id, "approved", by),
        operations().decide(id, "denied", { ...by, because: "no" }),
      ]);
      expect(both.filter((one) => one !== undefined)).toEqual([conversation]);
      expect(await operations().decide(id, "approved", by)).toBeUndefined();
      expect(await stateOf(turn)).toBe("ready");
      expect(await turns().findWaiting(conversation.agent)).toEqual([conversation]);
    });

    it("sends what it says only if it counts", async () => {
      const { conversation, id } = await asked();
      const draft = {
        key: newKey(),
        roomId: conversation.roomId,
        sender: by.userId,
        kind: "message",
        content: {},
      } as const;
      const late = { ...draft, key: newKey() };
      await operations().decide(id, "denied", by, [draft]);
      await operations().decide(id, "approved", by, [late]);
      const rows = await database().sql`select key from outbox where room_id = ${conversation.roomId}`;
      expect([...rows]).toEqual([{ key: draft.key }]);
    });

    it.each([
      ["approved", { state: "asked", decision: "approved", endedAt: null }],
      ["denied", { state: "refused", decision: "denied", endedAt: expect.any(Date) }],
      ["expired", { state: "expired", decision: null, endedAt: expect.any(Date) }],
    ] as const)("that is %s is kept with who took it, and why", async (decision, expected) => {
      const { id } = await asked();
      await operations().decide(id, decision, { ...by, because: "a reason" });
      expect(await operations().find(id)).toMatchObject({
        ...expected,
        decidedBy: by.userId,
        decidedBecause: "a reason",
        decidedAt: expect.any(Date),
      });
    });

    it("lets the turn that waited go on, before another begins, as one that is taken over", async () => {
      const { conversation, turn, id } = await asked();
      await wake(database(), conversation);
      await operations().decide(id, "approved", by);
      expect(await claim(conversation)).toMatchObject({ id: turn.id, epoch: 2, wakes: null });
      expect(await turns().claim(conversation, 4)).toMatchObject({ id: turn.id, epoch: 3 });
    });

    it("waits for the turn that is open in its conversation, and for a free place", async () => {
      const { conversation, id, turn } = await asked();
      const { turn: other } = await opened(conversation);
      await operations().decide(id, "approved", by);
      const open = await claim(conversation);
      expect(open.id).toBe(other.id);
      const { waiting } = await turns().commit(open, { n: 0, name: "x", result: {}, ends: true });
      expect(waiting).toEqual([conversation]);
      const elsewhere = await opened({ ...conversation, roomId: newRoom() });
      expect(await turns().claim(conversation, 1)).toBe("busy");
      await turns().close(elsewhere.turn, "cancelled", "enough");
      expect(await claim(conversation, 1)).toMatchObject({ id: turn.id });
    });

    it("does not wake an agent that is paused", async () => {
      const { conversation, id, turn } = await asked();
      await new Agents(database()).setPaused(conversation.agent, true);
      await operations().decide(id, "approved", by);
      expect(await turns().findWaiting(conversation.agent)).toEqual([]);
      expect(await turns().claim(conversation, 4)).toBe("busy");
      expect(await stateOf(turn)).toBe("ready");
    });

    it("of two processes that take it at once is worked on by one", async () => {
      const { conversation, id, turn } = await asked();
      await operations().decide(id, "approved", by);
      const claims = await Promise.all([turns().claim(conversation, 4), turns().claim(conversation, 4)]);
      const epochs = claims.flatMap((one) => (typeof one === "string" ? [] : one.epoch));
      // Who took it over from the other has the higher epoch; only that one can write.
      expect(new Set(epochs).size).toBe(epochs.length);
      const [row] = await database().sql<{ epoch: number }[]>`select epoch from turns where id = ${turn.id}`;
      expect(Math.max(...epochs)).toBe(row?.epoch);
    });
  });

  describe("closing a turn", () => {
    it("interrupts what it was doing, or waiting for, and tells the agent", async () => {
      const { turn, id } = await asked();
      await turns().close(turn, "cancelled", "stopped by @you:test", {
        ephemeris: [{ entry: "<thought>one</thought>", subAgent: null }],
      });
      expect(await operations().find(id)).toMatchObject({ state: "interrupted", error: "stopped by @you:test" });
      expect(await stateOf(turn)).toBe("cancelled");
      const told = await database().sql`select entry from ephemeris where turn_id = ${turn.id}`;
      expect([...told]).toEqual([{ entry: "<thought>one</thought>" }]);
      expect(await operations().decide(id, "approved", by)).toBeUndefined();
    });

    it("is what pausing does to turns that wait as well", async () => {
      const { conversation } = await asked();
      expect(await new Agents(database()).atWork(conversation.agent)).toEqual([conversation]);
    });
  });

  it("lists the last of a conversation, the newest last", async () => {
    const { conversation, turn } = await opened();
    const keys: string[] = [];
    for (let n = 0; n < 4; n++) {
      const operation = { ...call({ n }), state: "done" as const };
      keys.push(operation.key);
      await turns().commit(turn, { n, name: "call x", result: {}, operations: [operation] });
    }
    expect((await operations().newest(conversation, 3)).map(({ key }) => key)).toEqual(keys.slice(1));
    expect((await operations().newest(undefined, 1)).map(({ key }) => key)).toEqual(keys.slice(3));
    expect(
      await operations().newest({ ...conversation, agent: (await addAgent(database(), newUser())).name }, 9),
    ).toEqual([]);
  });
});
