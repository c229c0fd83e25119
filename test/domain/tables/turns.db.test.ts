import { describe, expect, it, onTestFinished } from "vitest";
import { openLeases } from "../../../src/adapters/database/leases.ts";
import { openNotifier } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { Conversation, EventId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { withdrawalOf } from "../../../src/domain/speech/draft.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Fenced, type StepCommit } from "../../../src/domain/tables/steps.ts";
import { type ClaimedTurn, type Turn, Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  const turnsOf = (runner = "this process") => new Turns(database(), runner);
  const newConversation = async (): Promise<Conversation> => ({
    agent: (await addAgent(database())).name,
    roomId: newRoom(),
  });
  const open = async (conversation: Conversation, turns = turnsOf()): Promise<ClaimedTurn> => {
    const turn = await turns.claim(conversation, 4);
    if (typeof turn === "string") throw new Error(`the conversation is ${turn}`);
    return turn;
  };
  const opened = async (): Promise<{ conversation: Conversation; turn: Turn }> => {
    const conversation = await newConversation();
    await wake(database(), conversation);
    return { conversation, turn: await open(conversation) };
  };
  const fullStep = (turn: Turn): StepCommit => ({
    n: 0,
    name: "model",
    result: { text: "done" },
    outbox: [
      {
        key: newKey(),
        roomId: turn.roomId,
        sender: "@agent_x:test" as UserId,
        kind: "message",
        content: { body: "hi" },
      },
    ],
    ephemeris: ["<thought>one</thought>", "<thought>two</thought>"],
    usage: {
      model: "m",
      promptTokens: 3,
      cachedTokens: 2,
      completionTokens: 1,
      costUsd: 0.5,
      isEstimated: false,
      milliseconds: 7,
      reservation: undefined,
    },
    render: {
      turnId: turn.id,
      n: 0,
      system: "s",
      prompt: "p",
      eventIds: [],
      tools: "",
      toolset: "none",
      subAgent: null,
    },
    sources: [turn.roomId],
    seen: 1_000_000,
  });
  /** Only connections that are open already really work at the same time. */
  const openConnections = async (): Promise<void> => {
    await Promise.all(Array.from({ length: 10 }, () => database().sql`select pg_sleep(0.05)`));
  };
  /** Everything that a step may leave behind. */
  const traces = async (turn: Turn) => {
    const { sql } = database();
    const [steps, outbox, ephemeris, usage, renders, conversations, turns] = await Promise.all([
      sql`select n, name, state, result from steps where turn_id = ${turn.id} order by n`,
      sql`select key, state from outbox where turn_id = ${turn.id} order by id`,
      sql`select entry from ephemeris where turn_id = ${turn.id} order by id`,
      sql`select n, cost_usd from usage where turn_id = ${turn.id}`,
      sql`select n, prompt from renders where turn_id = ${turn.id}`,
      sql`select seen_position from conversations where agent = ${turn.agent} and room_id = ${turn.roomId}`,
      sql`select state, epoch, sources from turns where id = ${turn.id}`,
    ]);
    return { steps, outbox, ephemeris, usage, renders, conversations, turns };
  };

  describe("claim", () => {
    it("opens one turn for ten of the conversation's wakes, and leaves the others unread", async () => {
      const conversation = await newConversation();
      const events: EventId[] = [];
      for (let i = 0; i < 12; i++) events.push((await wake(database(), conversation)).eventId);
      const turn = await open(conversation);
      const taken = await turnsOf().absorb(turn, { takesMore: true });
      expect(taken.map(({ eventId }) => eventId)).toEqual(events.slice(0, 10));
      expect(await turnsOf().findWaiting(conversation.agent)).toEqual([conversation]);
    });

    it("finds nothing to do where all wakes are taken and no turn is open", async () => {
      const { conversation, turn } = await opened();
      await turnsOf().commit(turn, { n: 0, name: "model", result: {}, ends: true });
      expect(await turnsOf().claim(conversation, 4)).toBe("idle");
    });

    it("opens no turn while the agent works in as many conversations as it may", async () => {
      const { conversation, turn } = await opened();
      const other = { ...conversation, roomId: newRoom() };
      await wake(database(), other);
      expect(await turnsOf().claim(other, 1)).toBe("busy");
      expect(await turnsOf().findWaiting(conversation.agent)).toEqual([other]);
      await turnsOf().close(turn, "failed", "test");
      expect(await turnsOf().claim(other, 1)).toMatchObject({ number: turn.number + 1 });
    });

    it("keeps to the limit of conversations when they are claimed at the same time", async () => {
      const { agent } = await newConversation();
      const conversations = Array.from({ length: 6 }, () => ({ agent, roomId: newRoom() }));
      for (const conversation of conversations) await wake(database(), conversation);
      await openConnections();
      const claims = await Promise.all(conversations.map((conversation) => turnsOf().claim(conversation, 2)));
      expect(claims.filter((claim) => typeof claim === "object")).toHaveLength(2);
      expect(claims.filter((claim) => claim === "busy")).toHaveLength(4);
    });

    it("opens one turn when two processes claim the same conversation at the same time", async () => {
      const conversation = await newConversation();
      await wake(database(), conversation);
      await openConnections();
      const claims = await Promise.all(["a", "b", "c"].map((runner) => turnsOf(runner).claim(conversation, 4)));
      const ids = new Set(claims.flatMap((claim) => (typeof claim === "object" ? claim.id : [])));
      expect(ids.size).toBe(1);
    });

    it("takes an open turn over under a higher epoch", async () => {
      const { conversation, turn } = await opened();
      const again = await open(conversation, turnsOf("another process"));
      expect(again).toMatchObject({ id: turn.id, number: turn.number, epoch: turn.epoch + 1 });
    });

    it("numbers the turns of an agent without a gap", async () => {
      const { conversation, turn } = await opened();
      await turnsOf().close(turn, "failed", "test");
      expect(await turnsOf().claim(conversation, 4)).toBe("idle");
      await wake(database(), conversation);
      expect((await open(conversation)).number).toBe(turn.number + 1);
    });

    it("acts for everybody whose event it takes, each named once", async () => {
      const conversation = await newConversation();
      const [ann, bob] = [newUser(), newUser()];
      for (const requester of [ann, bob, ann]) await wake(database(), conversation, { requester });
      expect([...(await open(conversation)).requesters].sort()).toEqual([ann, bob].sort());
    });

    it("goes on with the chain of a human's event rather than with an agent's", async () => {
      const conversation = await newConversation();
      const human = await wake(database(), conversation);
      await wake(database(), conversation, { chain: "$elsewhere" });
      expect((await open(conversation)).chain).toBe(human.eventId);
    });
  });

  describe("absorb", () => {
    it("takes what has come since, up to ten events a turn", async () => {
      const { conversation, turn } = await opened();
      for (let i = 0; i < 11; i++) await wake(database(), conversation);
      expect(await turnsOf().absorb(turn, { takesMore: true })).toHaveLength(10);
      expect(await turnsOf().absorb(turn, { takesMore: true })).toHaveLength(10);
      expect(await turnsOf().findWaiting(conversation.agent)).toEqual([conversation]);
    });

    it("leaves what has come since where a finished step is only read again", async () => {
      const { conversation, turn } = await opened();
      await wake(database(), conversation);
      expect(await turnsOf().absorb(turn, { takesMore: false })).toHaveLength(1);
      expect(await turnsOf().findWaiting(conversation.agent)).toEqual([conversation]);
    });

    it("makes the turn work also for those whose events it takes", async () => {
      const { conversation, turn } = await opened();
      const requester = newUser();
      await wake(database(), conversation, { requester });
      await turnsOf().absorb(turn, { takesMore: true });
      expect((await turnsOf().open(conversation))[0]?.requesters).toContain(requester);
    });

    it("takes nothing for a turn that another has taken over", async () => {
      const { conversation, turn } = await opened();
      await open(conversation);
      await wake(database(), conversation);
      expect(await turnsOf().absorb(turn, { takesMore: true })).toHaveLength(1);
      expect(await turnsOf().findWaiting(conversation.agent)).toEqual([conversation]);
    });

    it("leaves other conversations of the agent alone", async () => {
      const { conversation, turn } = await opened();
      await wake(database(), { ...conversation, roomId: newRoom() });
      expect(await turnsOf().absorb(turn, { takesMore: true })).toHaveLength(1);
    });
  });

  describe("commit", () => {
    it("writes the step with everything that follows from it", async () => {
      const { turn } = await opened();
      const step = fullStep(turn);
      await turnsOf().commit(turn, step);
      expect(await traces(turn)).toEqual({
        steps: [{ n: 0, name: "model", state: "done", result: { text: "done" } }],
        outbox: [{ key: step.outbox?.[0]?.key, state: "pending" }],
        ephemeris: [{ entry: "<thought>one</thought>" }, { entry: "<thought>two</thought>" }],
        usage: [{ n: 0, cost_usd: 0.5 }],
        renders: [{ n: 0, prompt: "p" }],
        conversations: [{ seen_position: 1_000_000 }],
        turns: [{ state: "running", epoch: 1, sources: [turn.roomId] }],
      });
    });

    it("changes nothing the second time", async () => {
      const { turn } = await opened();
      const step = fullStep(turn);
      await turnsOf().commit(turn, step);
      const first = await traces(turn);
      await turnsOf().commit(turn, { ...step, result: { text: "something else" } });
      expect(await traces(turn)).toEqual(first);
    });

    it("can be repeated when its answer was lost, also where it ended the turn", async () => {
      const { conversation, turn } = await opened();
      await wake(database(), conversation);
      const step = { ...fullStep(turn), ends: true };
      expect(await turnsOf().commit(turn, step)).toMatchObject({ waiting: [conversation] });
      const first = await traces(turn);
      expect(await turnsOf().commit(turn, step)).toMatchObject({ waiting: [conversation] });
      expect(await traces(turn)).toEqual(first);
    });

    it("refuses a step of an old epoch, which leaves no trace in any table", async () => {
      const { conversation, turn } = await opened();
      await open(conversation);
      const before = await traces(turn);
      await expect(turnsOf().commit(turn, { ...fullStep(turn), ends: true })).rejects.toThrow(Fenced);
      expect(await traces(turn)).toEqual(before);
    });

    it("refuses a step that whoever took the turn over has written already", async () => {
      const { conversation, turn } = await opened();
      const later = await open(conversation);
      await turnsOf().commit(later, { ...fullStep(later), ends: true });
      await expect(turnsOf().commit(turn, { ...fullStep(turn), ends: true })).rejects.toThrow(Fenced);
    });

    it("refuses a step of a turn that was stopped, which leaves no trace", async () => {
      const { turn } = await opened();
      await turnsOf().close(turn, "cancelled", "stopped");
      const before = await traces(turn);
      await expect(turnsOf().commit(turn, fullStep(turn))).rejects.toThrow(Fenced);
      expect(await traces(turn)).toEqual(before);
    });

    it("finishes a step that was begun", async () => {
      const { turn } = await opened();
      await turnsOf().begin(turn, 0, "call x", { ...call(), state: "running" });
      expect(await turnsOf().journal(turn)).toEqual([{ n: 0, name: "call x", state: "started", result: null }]);
      await turnsOf().commit(turn, { n: 0, name: "call x", result: { ok: true } });
      expect(await turnsOf().journal(turn)).toEqual([{ n: 0, name: "call x", state: "done", result: { ok: true } }]);
    });

    it("says which rows are new in the outbox, and what waits before them in their rooms", async () => {
      const { turn } = await opened();
      const [one, two] = [fullStep(turn), { ...fullStep(turn), n: 1, name: "second" }];
      const keysOf = ({ outbox = [] }: StepCommit) => outbox.map(({ key }) => key);
      const first = await turnsOf().commit(turn, one);
      expect(first.queued).toEqual({ drafts: one.outbox, fresh: keysOf(one), before: [] });
      const second = await turnsOf().commit(turn, two);
      expect(second.queued).toMatchObject({ fresh: keysOf(two), before: keysOf(one) });
      expect((await turnsOf().commit(turn, two)).queued?.fresh).toEqual([]);
      const silent = await turnsOf().commit(turn, { n: 2, name: "third", result: {} });
      expect(silent.queued).toBeUndefined();
    });

    it("returns the agent's conversations that wait, once each, when it ends the turn", async () => {
      const { conversation, turn } = await opened();
      const other = { ...conversation, roomId: newRoom() };
      for (const one of [conversation, other, other]) await wake(database(), one);
      expect(await turnsOf().commit(turn, { n: 0, name: "model", result: {} })).toMatchObject({ waiting: [] });
      const { waiting } = await turnsOf().commit(turn, { n: 1, name: "model", result: {}, ends: true });
      expect(new Set(waiting.map(({ roomId }) => roomId))).toEqual(new Set([conversation.roomId, other.roomId]));
      expect(waiting).toHaveLength(2);
    });

    it("never moves the place up to which was read backwards", async () => {
      const { turn } = await opened();
      await turnsOf().commit(turn, { n: 0, name: "model", result: {}, seen: 20 });
      await turnsOf().commit(turn, { n: 1, name: "model", result: {}, seen: 10 });
      expect((await traces(turn)).conversations).toEqual([{ seen_position: 20 }]);
    });

    it("gathers the rooms that were rendered in all of the turn's steps", async () => {
      const { conversation, turn } = await opened();
      const other = newRoom();
      await turnsOf().commit(turn, { n: 0, name: "model", result: {}, sources: [turn.roomId] });
      await turnsOf().commit(turn, { n: 1, name: "model", result: {}, sources: [turn.roomId, other] });
      const sources = (await turnsOf().open(conversation))[0]?.sources ?? [];
      expect([...sources].sort()).toEqual([turn.roomId, other].sort());
    });
  });

  describe("begin", () => {
    it("is refused under an old epoch, and leaves no step", async () => {
      const { conversation, turn } = await opened();
      await open(conversation);
      await expect(turnsOf().begin(turn, 0, "call x", { ...call(), state: "running" })).rejects.toThrow(Fenced);
      expect(await turnsOf().journal(turn)).toEqual([]);
    });
  });

  describe("close", () => {
    it("cancels a running turn and sends its notice once", async () => {
      const { conversation, turn } = await opened();
      const notice = fullStep(turn).outbox ?? [];
      await turnsOf().close(turn, "cancelled", "stopped by @you:test", { outbox: notice });
      await turnsOf().close(turn, "failed", "too late", { outbox: [{ ...notice[0], key: newKey() } as never] });
      const [row] = await database().sql`select state, error from turns where id = ${turn.id}`;
      expect(row).toEqual({ state: "cancelled", error: "stopped by @you:test" });
      expect((await traces(turn)).outbox).toHaveLength(1);
      expect(await turnsOf().open(conversation)).toEqual([]);
    });

    it("takes back the drafts of the turn, unless that is under way", async () => {
      const { conversation, turn } = await opened();
      const drafts = [newKey(), newKey()].map((key) => ({
        key,
        roomId: conversation.roomId,
        sender: "@agent:test" as UserId,
        kind: "draft" as const,
        content: {},
      }));
      const outbox = new Outbox(database());
      await outbox.add(drafts, turn.id);
      await outbox.add(drafts.slice(0, 1).map(withdrawalOf));
      await turnsOf().close(turn, "cancelled", "stopped by @you:test");
      expect(await outbox.take(conversation.roomId, 10)).toMatchObject([
        ...drafts.map((draft) => ({ ...draft, about: null })),
        ...drafts.map(withdrawalOf),
      ]);
    });
  });

  describe("a timer", () => {
    const due = async () => {
      const agent = await addAgent(database());
      await new Agents(database()).setTimer(agent.name, 60);
      await database().sql`update agents set last_turn_at = now() - interval '61 seconds' where name = ${agent.name}`;
      return agent;
    };

    it("wakes once even if two processes ask", async () => {
      const agent = await due();
      const agents = new Agents(database());
      const asked = await Promise.all([agents.wakeByTimer(), agents.wakeByTimer()]);
      const woken = asked.flat().filter((conversation) => conversation.agent === agent.name);
      expect(woken).toEqual([{ agent: agent.name, roomId: "" }]);
      const wakes = await database().sql`select reason, requester from wakes where agent = ${agent.name}`;
      expect([...wakes]).toEqual([{ reason: "timer", requester: agent.owner }]);
    });

    it("does not wake before it has run out, nor an agent without one", async () => {
      const agent = await addAgent(database());
      const patient = await addAgent(database());
      await new Agents(database()).setTimer(patient.name, 60);
      await database().sql`update agents set last_turn_at = now() - interval '50 seconds'
        where name in ${database().sql([agent.name, patient.name])}`;
      const woken = (await new Agents(database()).wakeByTimer()).map((conversation) => conversation.agent);
      expect(woken).not.toContain(agent.name);
      expect(woken).not.toContain(patient.name);
    });

    it("begins anew with each turn", async () => {
      const agent = await due();
      const conversation = { agent: agent.name, roomId: newRoom() };
      await wake(database(), conversation);
      await open(conversation);
      const woken = (await new Agents(database()).wakeByTimer()).map((one) => one.agent);
      expect(woken).not.toContain(agent.name);
    });
  });

  describe("a turn that is opened", () => {
    /** A process that starts now. */
    const startProcess = async () => {
      const notifier = await openNotifier(database(), systemClock, silentLog);
      const leases = openLeases({ database: database(), notifier, name: newKey(), clock: systemClock, log: silentLog });
      await leases.start();
      onTestFinished(async () => {
        await leases.stop();
        await notifier.close();
      });
      return turnsOf(leases.session);
    };

    it("is inherited where what it is about has waited since before the process was started", async () => {
      const conversation = await newConversation();
      await wake(database(), conversation);
      expect(await open(conversation, await startProcess())).toMatchObject({ isInherited: true });
    });

    it("is inherited whenever its process claims it again: its room may not have been read before", async () => {
      const conversation = await newConversation();
      await wake(database(), conversation);
      const turns = await startProcess();
      await open(conversation, turns);
      expect(await open(conversation, turns)).toMatchObject({ epoch: 2, isInherited: true });
    });

    it("takes what has waited since before the process was started without what has come since", async () => {
      const conversation = await newConversation();
      const before = await wake(database(), conversation);
      const turns = await startProcess();
      const since = await wake(database(), conversation);
      const first = await open(conversation, turns);
      expect((await turns.absorb(first, { takesMore: false })).map(({ eventId }) => eventId)).toEqual([before.eventId]);
      await turns.close(first, "failed", "test");
      const second = await open(conversation, turns);
      expect(second.isInherited).toBe(false);
      expect((await turns.absorb(second, { takesMore: false })).map(({ eventId }) => eventId)).toEqual([since.eventId]);
    });

    it("is not inherited where all that it is about has come since", async () => {
      const [conversation, turns] = [await newConversation(), await startProcess()];
      await wake(database(), conversation);
      for (const epoch of [1, 2]) expect(await open(conversation, turns)).toMatchObject({ epoch, isInherited: false });
    });
  });
});
