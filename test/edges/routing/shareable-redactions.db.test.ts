import { beforeEach, describe, expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { blank, printsOf } from "../../../src/base/lib/repeats.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { thought } from "../../../src/base/prompt/ephemeris.ts";
import { MemoryRecall } from "../../../src/domain/memory/recall.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Events, type StoredEvent } from "../../../src/domain/tables/events.ts";
import { MemoryTransfers } from "../../../src/domain/tables/memory-export.ts";
import { type RedactionMark, RedactionMarks } from "../../../src/domain/tables/redaction-marks.ts";
import { Renders } from "../../../src/domain/tables/renders.ts";
import { type Turn, Turns } from "../../../src/domain/tables/turns.ts";
import { WrittenFiles } from "../../../src/domain/tables/written-files.ts";
import { blankRepetitions } from "../../../src/edges/routing/blanking.ts";
import { noApprovals } from "../../support/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, setMember, settleEvent, wake } from "../../support/rows.ts";

const secret = "The code of the quokka is 4711 as all should know";
const repeated = `Noted. ${secret}.`;
const at = new Date("2026-01-01T12:00:00Z");

onEachDatabase((database) => {
  const events = () => new Events(database());
  let agent: AgentRow;
  let event: StoredEvent;
  let [origin, elsewhere, unshown]: RoomId[] = [];
  let turns: Turns;
  beforeEach(async () => {
    agent = await addAgent(database());
    [origin, elsewhere, unshown] = [newRoom(), newRoom(), newRoom()];
    for (const room of [origin, elsewhere, unshown]) {
      await setMember(database(), room, agent.userId, "join");
      await setMember(database(), room, newUser(), "join");
    }
    event = await settleEvent(database(), { roomId: origin, content: { msgtype: "m.text", body: secret } });
    turns = new Turns(database(), newKey());
    const first = await begin(origin);
    const kept = { kind: "observation", tool: "Remember", text: secret, importance: 0.7, isShareable: true } as const;
    await turns.commit(first, {
      n: 0,
      name: "x",
      result: {},
      kept: [kept],
      ends: true,
    });
  });

  const begin = async (roomId: RoomId): Promise<Turn> => {
    await wake(database(), { agent: agent.name, roomId });
    const claimed = await turns.claim({ agent: agent.name, roomId }, 4);
    if (typeof claimed === "string") throw new Error(`the conversation is ${claimed}`);
    return claimed;
  };
  const recallIn = async (here: RoomId) => {
    const memory = new MemoryRecall(database(), {
      embedder: () => undefined,
      ranking: () => "product",
      botUserId: "@clevernet:test" as UserId,
      rights: { findBelow: async (_, userIds) => [...userIds] },
    });
    return (await memory.recall(agent, here, { text: "What is the code of the quokka?", limit: 5 })).found;
  };
  /** A turn in which the agent repeats a text, in thought and in the room. */
  const repeatIn = async (roomId: RoomId) => {
    const turn = await begin(roomId);
    await new Renders(database(), 0).keep({
      turnId: turn.id,
      n: 0,
      system: "You are an agent",
      prompt: secret,
      eventIds: [],
      tools: "[]",
      toolset: newKey(),
      subAgent: null,
    });
    const operation = { ...call({ key: newKey(), summary: repeated }), state: "done", result: repeated } as const;
    const ephemeris = [render(thought(at, repeated))];
    await turns.commit(turn, { n: 0, name: "x", result: {}, ephemeris, operations: [operation], ends: true });
    const content = { msgtype: "m.text", body: repeated };
    return { turn, said: await settleEvent(database(), { roomId, sender: agent.userId, content }) };
  };
  const prints = () => printsOf([secret], event.eventId);
  const redact = () => events().redact(event.eventId, prints());
  const blankAll = async (): Promise<RedactionMark> => {
    const mark = { eventId: event.eventId, places: [origin as RoomId], prints: prints() };
    await blankRepetitions(mark, {
      events: events(),
      marks: new RedactionMarks(database()),
      files: new WrittenFiles(database()),
      approvals: noApprovals,
    });
    return mark;
  };
  const madeIn = async ({ turn, said }: Awaited<ReturnType<typeof repeatIn>>) => {
    const [entry] = await database().sql`select entry from ephemeris where turn_id = ${turn.id}`;
    const [operation] = await database().sql`select summary, result from operations where turn_id = ${turn.id}`;
    const [shown] = await database().sql`select prompt from renders where turn_id = ${turn.id}`;
    return [
      entry?.entry,
      operation?.summary,
      operation?.result,
      (await events().find(said.eventId))?.content.body,
      shown?.prompt,
    ];
  };
  const blanked = [render(thought(at, blank)), blank, blank, blank, ""];
  const untouched = [render(thought(at, repeated)), repeated, repeated, repeated, secret];

  describe("a redaction of what was let over every wall", () => {
    it("reaches the rooms in which it was recalled, and no others", async () => {
      expect(await recallIn(elsewhere as RoomId)).toHaveLength(1);
      const there = await repeatIn(elsewhere as RoomId);
      const other = await repeatIn(unshown as RoomId);
      await redact();
      await blankAll();
      expect(await madeIn(there)).toEqual(blanked);
      expect(await recallIn(elsewhere as RoomId)).toEqual([]);
      // Nobody has shown it there: that the words are the same is chance.
      expect(await madeIn(other)).toEqual(untouched);
    });

    it("empties what the agent was shown there, where it has not repeated it", async () => {
      await recallIn(elsewhere as RoomId);
      const turn = await begin(elsewhere as RoomId);
      await turns.commit(turn, { n: 0, name: "x", result: {}, ends: true });
      const render = { turnId: turn.id, n: 0, system: "s", prompt: secret, eventIds: [], tools: "[]", subAgent: null };
      await new Renders(database(), 0).keep({ ...render, toolset: newKey() });
      await redact();
      await blankAll();
      const [shown] = await database().sql`select prompt from renders where turn_id = ${turn.id}`;
      expect(shown?.prompt).toBe("");
    });

    it("goes on after a process has died when the memory was removed, and before its rooms were searched", async () => {
      await recallIn(elsewhere as RoomId);
      const there = await repeatIn(elsewhere as RoomId);
      await redact();
      const marks = new RedactionMarks(database());
      const mark = { eventId: event.eventId, places: [origin as RoomId], prints: prints() };
      const [memory] = await database().sql`select id from interactions where agent = ${agent.name} and shareable`;
      await marks.blank(mark, [{ kind: "interactions", id: String(memory?.id), texts: {} }]);
      await blankAll();
      expect(await madeIn(there)).toEqual(blanked);
    });

    it("reaches a room into which it was exported", async () => {
      const here = elsewhere as RoomId;
      const transfers = new MemoryTransfers(database());
      const { name, userId, owner } = agent;
      const exported = await transfers.newest({ agent: name, userId, owner, here }, 10_000, undefined);
      expect(exported.map(({ text }) => text)).toContain(secret);
      const there = await repeatIn(here);
      await redact();
      await blankAll();
      expect(await madeIn(there)).toEqual(blanked);
    });

    it("leaves no trace of where it was recalled when it is done", async () => {
      await recallIn(elsewhere as RoomId);
      await redact();
      const mark = await blankAll();
      const traces = () => database().sql`select 1 from shareable_recalls where room_id = ${elsewhere as RoomId}`;
      expect(await traces()).toHaveLength(1);
      await database()
        .sql`update redactions set redacted_at = redacted_at - interval '2 minutes' where event_id = ${event.eventId}`;
      await new RedactionMarks(database()).putBack(mark, []);
      expect(await traces()).toHaveLength(0);
    });

    it("drops the summary of a log in a room to which the words have come", async () => {
      await recallIn(elsewhere as RoomId);
      await repeatIn(elsewhere as RoomId);
      const log = JSON.stringify({ summary: { text: "The code is 4711.", sources: [elsewhere], taint: [], place: 1 } });
      await database()
        .sql`insert into conversations (agent, room_id, log) values (${agent.name}, ${elsewhere as RoomId}, ${log}::text::jsonb)
        on conflict (agent, room_id) do update set log = excluded.log`;
      await redact();
      await blankAll();
      const [row] = await database()
        .sql`select log from conversations where agent = ${agent.name} and room_id = ${elsewhere as RoomId}`;
      expect(row?.log).toEqual({});
    });
  });

  it("a redaction reaches a turn that was shown its room, and has looked anew since", async () => {
    const turn = await begin(elsewhere as RoomId);
    const shownIt = {
      n: 0,
      name: "x",
      result: {},
      ephemeris: [render(thought(at, repeated))],
      sources: [origin as RoomId],
    };
    await turns.commit(turn, shownIt);
    await turns.commit(turn, {
      n: 1,
      name: "look again",
      result: {},
      sources: [elsewhere as RoomId],
      looksAnew: true,
      ends: true,
    });
    await redact();
    await blankAll();
    const rows = await database().sql`select entry from ephemeris where turn_id = ${turn.id}`;
    expect(rows.map(({ entry }) => entry)).toEqual([render(thought(at, blank))]);
  });
});
