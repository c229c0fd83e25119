import { beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import type { Leases } from "../../../src/adapters/database/leases.ts";
import { Shards } from "../../../src/adapters/database/shards.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, EventId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { type ClaimedTurn, Turns } from "../../../src/domain/tables/turns.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { WakeKeeper } from "../../../src/engine/turn/keeper.ts";
import { TurnQueue } from "../../../src/engine/turn/queue.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { mindOf } from "../../support/mind.ts";
import { sharedByProcesses } from "../../support/own-process.ts";
import { eventually } from "../../support/poll.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say, userText } from "../../support/scripted-model.ts";
import { postgresMissing } from "../../support/shared-postgres.ts";

describe.skipIf(postgresMissing)("turns that several processes claim", () => {
  const shared = sharedByProcesses();
  let database: Database;
  beforeEach(async () => {
    database = await shared.open();
  });

  const newConversation = async (agent?: AgentName): Promise<Conversation> => {
    const [name, owner] = [agent ?? (newKey().replace(" ", "") as AgentName), newUser()];
    const directory = new AgentDirectory(database, systemClock, silentLog);
    const settings = parseAgentSettings({ maxConcurrentTurns: 32 }, "test");
    if (!agent) await directory.seed({ name, owner, persona: undefined, settings }, "test");
    const conversation = { agent: name, roomId: newRoom() };
    const { userId } = (await directory.find(name)) ?? { userId: owner };
    for (const member of [owner, userId]) await setMember(database, conversation.roomId, member, "join");
    return conversation;
  };
  const isTurn = (claim: Awaited<ReturnType<Turns["claim"]>>): claim is ClaimedTurn => typeof claim === "object";

  describe("in two processes that live", () => {
    let both: [Turns, Turns];
    let shards: Shards[];
    const stayAlive = () => Promise.all(shards.map((one) => one.enter()));
    beforeEach(async () => {
      shards = [];
      const enter = async (name: string) => {
        const connection = await shared.open();
        const session = newKey();
        shards.push(new Shards(connection, { name, session }));
        // Only connections that are open already really work at the same time.
        await Promise.all(Array.from({ length: 10 }, () => connection.sql`select pg_sleep(0.05)`));
        return new Turns(connection, session);
      };
      both = [await enter("one"), await enter("two")];
      await stayAlive();
    });

    it("are one for one wake, however often they are claimed at once", async () => {
      const { agent } = await newConversation();
      for (let round = 0; round < 100; round++) {
        if (round % 10 === 0) await stayAlive();
        const conversation = { agent, roomId: newRoom() };
        await wake(database, conversation);
        const claims = await Promise.all([...both, ...both].map((turns) => turns.claim(conversation, 32)));
        const turns = claims.filter(isTurn);
        // A process that claims twice takes its own turn over from itself.
        const rows = await database.sql`select id, runner from turns where room_id = ${conversation.roomId}`;
        expect(rows).toHaveLength(1);
        expect(new Set(turns.map(({ id }) => id))).toEqual(new Set([rows[0]?.id]));
        const first = claims.findIndex(isTurn);
        expect(claims.filter((claim, index) => isTurn(claim) && index % 2 !== first % 2)).toEqual([]);
        for (const turn of turns.slice(-1)) await both[0].close(turn, "cancelled", "enough");
      }
    });

    it("are claimed for ten rooms of an agent side by side, and nobody waits in a circle", async () => {
      const { agent } = await newConversation();
      const work = async (turns: Turns) => {
        const conversation = { agent, roomId: newRoom() };
        for (let round = 0; round < 30; round++) {
          await wake(database, conversation);
          const claim = await turns.claim(conversation, 4);
          if (isTurn(claim)) await turns.close(claim, "cancelled", "enough");
        }
      };
      await Promise.all(Array.from({ length: 5 }, () => both.map(work)).flat());
    });

    it("take each wake once, also where one turn ends while another is claimed", async () => {
      const conversation = await newConversation();
      const [one, two] = both;
      const taken: (EventId | null)[] = [];
      const events: EventId[] = [];
      const wakeUp = async () => events.push((await wake(database, conversation)).eventId);
      for (let round = 0; round < 100; round++) {
        if (round % 10 === 0) await stayAlive();
        await wakeUp();
        const turn = await one.claim(conversation, 32);
        if (!isTurn(turn)) throw new Error(turn);
        expect(turn.epoch).toBe(1);
        taken.push(...(turn.wakes ?? []).map(({ eventId }) => eventId));
        await wakeUp();
        const work = async () => {
          const more = await one.absorb(turn, { takesMore: true });
          await one.commit(turn, { n: 0, name: "model", result: {}, ends: true });
          taken.push(...more.slice(turn.wakes?.length ?? 0).map(({ eventId }) => eventId));
        };
        const [other] = await Promise.all([two.claim(conversation, 32), work()]);
        if (!isTurn(other)) continue;
        taken.push(...(other.wakes ?? []).map(({ eventId }) => eventId));
        await two.commit(other, { n: 0, name: "model", result: {}, ends: true });
      }
      expect(taken).toEqual(events);
    });

    it("are not taken from a process that lives, and the one that asks hears where more is to be done", async () => {
      const conversation = await newConversation();
      const [one, two] = both;
      await wake(database, conversation);
      const turn = await one.claim(conversation, 32);
      expect(await two.claim(conversation, 32)).toBe("idle");
      await wake(database, conversation);
      expect(await two.claim(conversation, 32)).toBe("elsewhere");
      expect(await two.findWaiting(conversation.agent)).toEqual([]);
      expect(await one.findWaiting(conversation.agent)).toEqual([conversation]);
      expect(await two.open(conversation)).toMatchObject([{ runner: one.session, epoch: 1 }]);
      if (isTurn(turn)) await one.close(turn, "cancelled", "enough");
      expect(await two.claim(conversation, 32)).toMatchObject({ epoch: 1 });
    });

    it("of one that died are taken when its lease has run out, by one of two that want them", async () => {
      const conversation = await newConversation();
      const [one, two] = both;
      const [dead] = [new Turns(database, newKey())];
      await new Shards(database, { name: "dead", session: dead.session }).enter();
      await wake(database, conversation);
      expect(await dead.claim(conversation, 32)).toMatchObject({ epoch: 1 });
      expect(await one.claim(conversation, 32)).toBe("idle");
      expect(await one.findWaiting(conversation.agent)).toEqual([]);
      await database.sql`update processes set until = now() - interval '1 ms' where name = 'dead'`;
      expect(await one.findWaiting(conversation.agent)).toEqual([conversation]);
      const claims = await Promise.all(both.map((turns) => turns.claim(conversation, 32)));
      expect(claims.filter(isTurn)).toMatchObject([{ epoch: 2, wakes: null }]);
      expect(claims).toContain("idle");
      const [open] = await two.open(conversation);
      expect([one.session, two.session]).toContain(open?.runner);
    });
  });

  describe("in whole processes", () => {
    let model: ScriptedModel;
    beforeEach(async () => {
      model = await new ScriptedModel().start();
      shared.atEnd(() => model.stop());
    });

    interface Process {
      readonly leases: Leases;
      readonly queue: TurnQueue;
      readonly keeper: WakeKeeper;
      /** As if it had died: neither it nor the database hears of the other any more. */
      die(): Promise<void>;
    }
    const startProcess = async (name: string, room = 32): Promise<Process> => {
      const { proxy, database: own, notifier, leases } = await shared.enter(name);
      const rights = await rightsOf(own, { test: "operate" });
      const options = { modelUrl: model.url, rights, tools: [sendMessage] };
      const mind = { ...mindOf(own, options), turns: new Turns(own, leases.session) };
      const queue = new TurnQueue(silentLog);
      const runner = new TurnRunner(mind, notifier, (conversations) => keeper.send(conversations));
      const agents = mind.directory.table;
      const keeper = new WakeKeeper({ ...mind, queue, leases, notifier, agents, approvals: new Approvals(mind) });
      await leases.start();
      await keeper.start(room, (conversation) => runner.run(conversation));
      shared.atEnd(async () => {
        await proxy.accept();
        keeper.stop();
        await runner.close(0);
        await queue.stop();
      });
      return { leases, queue, keeper, die: () => proxy.refuse() };
    };
    const asks =
      ({ roomId }: Conversation) =>
      (request: ModelRequest) =>
        userText(request).includes(roomId);
    const answerIn =
      ({ roomId }: Conversation) =>
      (request: ModelRequest) =>
        say(request, roomId, "done", { final: true });
    const answered = async ({ roomId }: Conversation) =>
      (await database.sql`select 1 from turns where room_id = ${roomId} and state = 'done'`).length > 0;
    const requestsOf = (conversation: Conversation) => model.requests.filter(asks(conversation)).length;
    /** Woken, as the process does that has routed an event. */
    const wakeIn = async ({ keeper }: Process, conversation: Conversation) => {
      await wake(database, conversation, { requester: newUser() });
      keeper.send([conversation]);
    };
    const sharedOut = () =>
      eventually(
        async () =>
          (await database.sql`select 1 from shards where until > now() group by session having count(*) = 32`)
            .length === 2,
        { what: "rooms to be shared" },
      );

    it("what one has no room for another does", async () => {
      const [first, second] = [await startProcess("first", 1), await startProcess("second", 1)];
      await sharedOut();
      const [long, short] = [await newConversation(), await newConversation()];
      model.on(asks(long), { hangs: true }).on(asks(short), answerIn(short));
      await wakeIn(first, long);
      await eventually(() => requestsOf(long) === 1, { what: "the long turn" });
      await wakeIn(first, short);
      await eventually(() => answered(short), { what: "the short turn" });
      expect(second.queue.isIdle).toBe(true);
      expect(requestsOf(short)).toBe(1);
    });

    it("what comes to one in a conversation that another works in is told to that one", async () => {
      const [first, second] = [await startProcess("first"), await startProcess("second")];
      await sharedOut();
      const conversation = await newConversation();
      model.on(asks(conversation), { hangs: true });
      await wakeIn(first, conversation);
      await eventually(() => requestsOf(conversation) === 1, { what: "the turn" });
      expect(first.queue.isIdle).toBe(true);
      await wakeIn(second, conversation);
      await eventually(() => !first.queue.isIdle, { what: "word" });
      expect(requestsOf(conversation)).toBe(1);
    });

    it("a process that starts under the name of one that died goes on at once, and that one works no more", async () => {
      const [first] = [await startProcess("first"), await startProcess("second")];
      await sharedOut();
      const [conversation, later] = [await newConversation(), await newConversation()];
      model.on(asks(conversation), { hangs: true }, { times: 1 }).on(asks(conversation), answerIn(conversation));
      await wakeIn(first, conversation);
      await eventually(() => requestsOf(conversation) === 1, { what: "the turn" });
      await startProcess("first");
      await eventually(() => answered(conversation), { within: 5_000, what: "the turn to go on" });
      await eventually(() => !first.leases.isLive, { what: "the one before to notice" });
      model.on(asks(later), answerIn(later));
      await wakeIn(first, later);
      await eventually(() => answered(later), { within: 40_000, what: "another to look after what lies there" });
      const [turn] = await database.sql`select runner from turns where room_id = ${later.roomId}`;
      expect(turn?.runner).not.toBe(first.leases.session);
    }, 60_000);

    it("the turn of one that died, and a wake that it did not come to, are another's when its lease has run out", async () => {
      const [first] = [await startProcess("first", 1), await startProcess("second")];
      await sharedOut();
      const [begun, stored] = [await newConversation(), await newConversation()];
      model.on(asks(begun), { hangs: true }, { times: 1 }).on(asks(begun), answerIn(begun));
      model.on(asks(stored), answerIn(stored));
      await wakeIn(first, begun);
      await eventually(() => requestsOf(begun) === 1, { what: "the turn" });
      await first.die();
      await wake(database, stored, { requester: newUser() });
      await eventually(async () => (await answered(begun)) && (await answered(stored)), {
        within: 20_000,
        what: "both turns",
      });
      expect([requestsOf(begun), requestsOf(stored)]).toEqual([2, 1]);
      const turns =
        await database.sql`select epoch from turns where room_id in ${database.sql([begun.roomId, stored.roomId])}`;
      expect(turns.map(({ epoch }) => epoch).sort()).toEqual([1, 2]);
    }, 60_000);
  });
});
