import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import type { Memory } from "../../../src/domain/tables/interactions.ts";
import { Knowledge } from "../../../src/domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../../src/domain/tables/knowledge-offers.ts";
import { MemoryUpkeep } from "../../../src/domain/tables/memory-upkeep.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { MemoryKeeper } from "../../../src/edges/routing/memory-keeper.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newRoom, newUser, setMember, settleEvent, storeEvent, wake } from "../../support/rows.ts";

const memory: Memory = { kind: "observation", tool: "message", text: "The code is 4711.", importance: 0.3 };
const body = (text: string) => ({ msgtype: "m.text", body: text });

onEachDatabase((database) => {
  const remembered = (roomId: RoomId) =>
    database().sql<
      { id: number; kind: string; text: string; importance: number; agent: string | null; eventId: EventId }[]
    >`
      select id, kind, text, importance, agent, event_id as "eventId", sources, taint, requester, fact_key as "factKey", shareable
      from interactions where room_id = ${roomId} order by id`;
  const toEmbed = async (roomId: RoomId) =>
    (
      await database().sql`
        select 1 from interactions_to_embed join interactions on id = interaction_id where room_id = ${roomId}`
    ).length;

  describe("an event that agents are shown", () => {
    it("is remembered once, for all of them, by the statement that routes it", async () => {
      const roomId = newRoom();
      const event = await settleEvent(database(), { roomId }, { shownChars: 5, memory });
      await settle(database(), event, { shownChars: 5, memory });
      expect(await remembered(roomId)).toMatchObject([
        {
          kind: "observation",
          text: "someone: The code is 4711.",
          agent: null,
          eventId: event.eventId,
          sources: [roomId],
        },
      ]);
      expect(await toEmbed(roomId)).toBe(1);
    });

    it("stands under the name that its sender has in the room", async () => {
      const [roomId, sender] = [newRoom(), newUser()];
      await setMember(database(), roomId, sender, "join");
      await database().sql`update members set display_name = 'Ada' where user_id = ${sender}`;
      await settleEvent(database(), { roomId, sender }, { shownChars: 5, memory });
      expect(await remembered(roomId)).toMatchObject([{ text: "Ada: The code is 4711." }]);
    });

    it("is remembered as its edit says, and is to be embedded again", async () => {
      const roomId = newRoom();
      const { eventId } = await settleEvent(database(), { roomId }, { shownChars: 5, memory });
      const [row] = await remembered(roomId);
      await database().sql`delete from interactions_to_embed`;
      await database().sql`
        insert into interaction_vectors (interaction_id, model, chunk, vector) values (${row?.id ?? 0}, 'm', 0, '[1,2]')`;
      await new Events(database()).applyEdit(eventId, body("The code is 4712."), {
        ...memory,
        text: "The code is 4712.",
      });
      expect(await remembered(roomId)).toMatchObject([{ id: row?.id, text: "someone: The code is 4712." }]);
      expect(await toEmbed(roomId)).toBe(1);
      expect(await database().sql`select 1 from interaction_vectors where interaction_id = ${row?.id ?? 0}`).toEqual(
        [],
      );
    });

    it("is remembered no more when it is redacted, nor are its vectors", async () => {
      const roomId = newRoom();
      const { eventId } = await settleEvent(database(), { roomId }, { shownChars: 5, memory });
      const [row] = await remembered(roomId);
      await database().sql`
        insert into interaction_vectors (interaction_id, model, chunk, vector) values (${row?.id ?? 0}, 'm', 0, '[1,2]')`;
      await new Events(database()).redact(eventId);
      expect(await remembered(roomId)).toEqual([]);
      expect(await database().sql`select 1 from interaction_vectors where interaction_id = ${row?.id ?? 0}`).toEqual(
        [],
      );
    });

    it("is not remembered where its redaction came first", async () => {
      const roomId = newRoom();
      const event = await storeEvent(database(), { roomId });
      await new Events(database()).redact(event.eventId);
      await settle(database(), event, { shownChars: 5, memory });
      expect(await remembered(roomId)).toEqual([]);
    });

    it("loses the words of an edit that is redacted, and of nobody else's", async () => {
      const [roomId, other] = [newRoom(), newUser()];
      const { eventId: replaces } = await settleEvent(database(), { roomId }, { shownChars: 5, memory });
      const theirs = await settleEvent(database(), { roomId, replaces, sender: other }, {});
      const own = await settleEvent(database(), { roomId, replaces }, {});
      const events = new Events(database());
      await events.redact(theirs.eventId);
      expect(await remembered(roomId)).toMatchObject([{ text: "someone: The code is 4711." }]);
      await events.redact(own.eventId);
      expect(await remembered(roomId)).toMatchObject([{ text: "someone: " }]);
    });
  });

  describe("a step", () => {
    it("is remembered with its turn's sources, taint and requester, once", async () => {
      const [agent, roomId, requester] = [await addAgent(database()), newRoom(), newUser()];
      const conversation = { agent: agent.name, roomId };
      await wake(database(), conversation, { requester });
      const turns = new Turns(database(), "process");
      const turn = await turns.claim(conversation, 4);
      if (typeof turn === "string") throw new Error(turn);
      const step = {
        n: 0,
        name: "model",
        result: {},
        sources: ["!other:test" as RoomId],
        taint: ["@stranger:test"],
        ephemeris: ["<thought/>", "<thought/>"],
        remembered: [undefined, { kind: "thought", text: "I think so.", importance: 0.3 } as const],
        kept: [{ kind: "fact", text: "The sky is blue.", importance: 0.9, factKey: "sky", isShareable: true } as const],
      };
      await turns.commit(turn, step);
      await turns.commit(turn, step);
      const taint = ["@stranger:test"];
      expect(await remembered(roomId)).toMatchObject([
        {
          kind: "thought",
          agent: agent.name,
          text: `agent_${agent.name}: I think so.`,
          taint,
          requester,
          shareable: false,
        },
        { kind: "fact", importance: expect.closeTo(0.9), factKey: "sky", shareable: true, taint },
      ]);
      const [row] = await remembered(roomId);
      expect((row as unknown as { sources: string[] }).sources.toSorted()).toEqual(["!other:test", roomId].toSorted());
    });
  });

  describe("what was there before the memory", () => {
    const keeperOf = () =>
      new MemoryKeeper({
        upkeep: new MemoryUpkeep(database()),
        knowledge: new Knowledge(database()),
        offers: new KnowledgeOffers(database()),
        kindOf: (userId) => (userId.startsWith("@agent_") ? "agent" : "human"),
        isCommand: ({ content }) => String(content.body).startsWith("!"),
        clock: systemClock,
        log: silentLog,
      });

    it("is taken over in the background, except for commands, redacted words and rooms of the bridge's own", async () => {
      const [agent, roomId, hidden] = [await addAgent(database()), newRoom(), newRoom()];
      await settleEvent(database(), { roomId, content: body("Remember the milk.") });
      await settleEvent(database(), { roomId, content: body("!status") });
      await settleEvent(database(), { roomId: hidden, content: body("A thought.") });
      await database().sql`update rooms set kind = 'thoughts' where room_id = ${hidden}`;
      const gone = await settleEvent(database(), { roomId, content: body("A secret.") });
      await new Events(database()).redact(gone.eventId);
      await database().sql`
        insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources) values
          (${agent.userId}, ${roomId}, 900001, 0, 1, '<thought timestamp="now">Milk, then.</thought>', ${[roomId]}),
          (${agent.userId}, ${roomId}, 900001, 0, 2, '<thought sent>Said aloud.</thought>', ${[roomId]})`;
      await database().sql`
        insert into memory_takeover select 'events', max(seq) + 1 from events union all select 'ephemeris', max(id) + 1 from ephemeris
        on conflict (source) do update set below = excluded.below`;
      const keeper = keeperOf();
      keeper.start();
      const taken = await eventually(
        async () => {
          const rows = await remembered(roomId);
          return rows.length >= 2 ? rows : undefined;
        },
        { what: "two rows are taken over" },
      );
      await keeper.stop();
      expect(taken.map(({ kind, text }) => [kind, text])).toEqual([
        ["observation", "someone: Remember the milk."],
        ["thought", `agent_${agent.name}: Milk, then.`],
      ]);
      expect(await remembered(hidden)).toEqual([]);
    });

    it("is taken over as it is now: of rows that changed meanwhile, nothing is kept yet", async () => {
      const roomId = newRoom();
      const upkeep = new MemoryUpkeep(database());
      const { eventId } = await settleEvent(database(), { roomId, content: body("before") });
      await database().sql`
        insert into memory_takeover select 'events', max(seq) + 1 from events on conflict (source) do update set below = excluded.below`;
      const old = (await upkeep.oldEvents()).slice(0, 1);
      await new Events(database()).applyEdit(eventId, body("after"));
      await upkeep.takeEvents(old, [{ eventId, memory: { ...memory, text: "before" } }]);
      expect(await remembered(roomId)).toEqual([]);
      expect((await upkeep.oldEvents())[0]).toMatchObject({ eventId, content: { body: "after" } });
    });
  });

  it("words are counted once, by their hashes", async () => {
    const upkeep = new MemoryUpkeep(database());
    while (await upkeep.countWords());
    const roomId = newRoom();
    const countOf = async () =>
      (await database().sql`select interactions from word_counts where word = hash_of('xylophon')`)[0]?.interactions;
    for (const text of ["A xylophone.", "Two xylophones: xylophone!", "None."])
      await settleEvent(database(), { roomId }, { shownChars: 5, memory: { ...memory, text } });
    await upkeep.countWords();
    await upkeep.countWords();
    expect(await countOf()).toBe(2);
  });
});
