import { beforeEach, describe, expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { type AgentRow, Agents } from "../../../src/domain/tables/agents.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, settleEvent, wake } from "../../support/rows.ts";

/** Tables that keep rows of an erased agent: that there was one, what happened in rooms, and what its calls cost. */
const kept = ["agents", "members", "events", "outbox", "usage", "spending", "audit"];

onEachDatabase((database) => {
  let agents: Agents;
  let agent: AgentRow;
  let room: RoomId;
  const turns = () => new Turns(database(), "test");
  beforeEach(async () => {
    agents = new Agents(database());
    agent = await addAgent(database());
    room = newRoom();
  });

  describe("a paused agent", () => {
    it("begins no turn, and goes on with what waits when it is resumed", async () => {
      const conversation = { agent: agent.name, roomId: room };
      await wake(database(), conversation);
      await agents.setPaused(agent.name, true);
      expect(await turns().findWaiting(agent.name)).toEqual([]);
      expect(await turns().claim(conversation, 4)).toBe("busy");
      await agents.setPaused(agent.name, false);
      expect(await turns().findWaiting(agent.name)).toEqual([conversation]);
      expect(await turns().claim(conversation, 4)).toMatchObject({ agent: agent.name });
      expect(await agents.atWork(agent.name)).toEqual([conversation]);
    });

    it("is not woken by its timer", async () => {
      await agents.setTimer(agent.name, 0);
      await agents.setPaused(agent.name, true);
      const woken = await agents.wakeByTimer();
      expect(woken.map(({ agent }) => agent)).not.toContain(agent.name);
    });
  });

  describe("a deleted agent", () => {
    beforeEach(() => agents.remove(agent.name));

    it("is not there, and its name is given to nobody again", async () => {
      expect(await agents.find(agent.name)).toBeUndefined();
      expect((await agents.all()).map(({ name }) => name)).not.toContain(agent.name);
      expect(await agents.wasDeleted(agent.name)).toBe(true);
      expect(await agents.add(agent)).toBe(false);
      expect(await agents.find(agent.name)).toBeUndefined();
    });
  });

  it("what a deleted agent could not decrypt is tried again by others", async () => {
    const { sql } = database();
    const { eventId } = await settleEvent(database(), { roomId: room, type: "m.room.encrypted" });
    await sql`insert into sealed_events (event_id, room_id, session_id, user_id, reason)
      values (${eventId}, ${room}, 's', ${agent.userId}, 'missing')`;
    await agents.remove(agent.name);
    expect(await sql`select 1 from sealed_events where event_id = ${eventId}`).toEqual([]);
    expect(await sql`select routed_at as at from events where event_id = ${eventId}`).toMatchObject([{ at: null }]);
  });

  it("an erased agent leaves nothing that it knew, in no table", async () => {
    const { sql } = database();
    const conversation = { agent: agent.name, roomId: room };
    await wake(database(), conversation);
    const turn = await turns().claim(conversation, 4);
    if (typeof turn === "string") throw new Error(turn);
    const own = `/${agent.name}/agent.json`;
    const inRoom = `/${room}/agents/${agent.name}/memory/NOW.md`;
    await sql`insert into renders (turn_id, n, system, prompt, event_ids) values (${turn.id}, 0, 's', 'p', '{}')`;
    await sql`insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
      values (${agent.userId}, ${room}, ${turn.id}, 0, 1, 'thought', '{}')`;
    await sql`insert into steps (turn_id, n, name, state) values (${turn.id}, 0, 'model', 'done')`;
    await sql`insert into conversations (agent, room_id) values (${agent.name}, ${room}) on conflict do nothing`;
    await sql`insert into windows (agent, room_id, src_type, src, turns_left, height)
      values (${agent.name}, ${room}, 'file', 'agents:/x', 2, 20)`;
    await turns().begin(turn, 1, "call x", { ...call({ n: 1 }), state: "running" });
    await sql`insert into todos (agent, room_id, number, name, key) values (${agent.name}, ${room}, 1, 'to do', ${newKey()})`;
    await sql`insert into knowledge (agent, source, text) values (${agent.name}, 'user', 'it is known')`;
    const { userId } = agent;
    await sql`insert into crypto_machines (user_id, device_id) values (${userId}, 'D')`;
    await sql`insert into crypto_rows (user_id, store, key, value) values (${userId}, 'core', 'account', 'keys')`;
    for (const [share, path] of [
      ["agents", own],
      ["rooms", inRoom],
    ] as const) {
      await sql`insert into files (share, path, content_type, text_content, owner) values (${share}, ${path}, 'text/plain', 'x', ${agent.owner})`;
      await sql`insert into file_versions (share, path, version, content_type, owner, written_at)
        values (${share}, ${path}, 1, 'text/plain', ${agent.owner}, now())`;
    }
    const all = await sql<{ table: string; column: string }[]>`
      select table_name as table, column_name as column from information_schema.columns
      where table_schema = 'public' and data_type in ('text', 'character varying')`;
    const columns = all.filter(({ table }) => !kept.includes(table));
    const left = async () => {
      const found: string[] = [];
      for (const { table, column } of columns) {
        const [row] = await sql`
          select count(*) as count from ${sql(table)}
          where ${sql(column)} in (${agent.name}, ${agent.userId}) or ${sql(column)} like ${`%/${agent.name}/%`}`;
        if (Number(row?.count) > 0) found.push(`${table}.${column}`);
      }
      return found;
    };
    expect((await left()).length).toBeGreaterThan(10);
    await agents.erase(agent.name);
    expect(await left()).toEqual([]);
    expect(await sql`select 1 from steps where turn_id = ${turn.id}`).toEqual([]);
    expect(await sql`select 1 from renders where turn_id = ${turn.id}`).toEqual([]);
  });
});
