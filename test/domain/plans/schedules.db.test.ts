import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { Conversation } from "../../../src/base/lib/ids.ts";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Schedules } from "../../../src/domain/plans/schedules.ts";
import type { Level } from "../../../src/domain/rights/permissions.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { type ScheduleDraft, ScheduleTable, schedulesMax } from "../../../src/domain/tables/schedules.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember } from "../../support/rows.ts";

const hour = 3_600_000;

onEachDatabase((database) => {
  const table = () => new ScheduleTable(database());

  /** An agent and a person who are both in a room. */
  async function newScene() {
    const [agent, roomId, ann] = [await addAgent(database()), newRoom(), newUser()];
    await setMember(database(), roomId, agent.userId, "join");
    await setMember(database(), roomId, ann, "join");
    const draft = (fields: Partial<ScheduleDraft> = {}): ScheduleDraft => ({
      key: newKey(),
      agent: agent.name,
      roomId,
      cron: null,
      timeZone: "UTC",
      text: "water the plants",
      madeBy: ann,
      sources: [roomId],
      taint: [],
      nextAt: new Date(systemClock.now().getTime() - hour),
      ...fields,
    });
    const add = async (fields: Partial<ScheduleDraft> = {}) => {
      const added = await table().add(draft(fields));
      if (!added) throw new Error("it was not added");
      return added;
    };
    const seat = { agent: agent.name, owner: agent.owner, here: roomId };
    return { agent, roomId, ann, draft, add, seat };
  }

  /** A process that rings what is due. */
  function newRinger(level: Level = "chat") {
    const woken: Conversation[] = [];
    const told: string[] = [];
    const schedules = new Schedules({
      table: table(),
      rights: { of: async () => level },
      clock: systemClock,
      log: silentLog,
      onWoken: (conversations) => woken.push(...conversations),
      onOutbox: () => {},
      tellOperators: (text) => told.push(text),
    });
    return { schedules, woken, told };
  }
  const wakesOf = (agent: string) =>
    database().sql<
      { key: string; roomId: RoomId; reason: string; requester: UserId; chain: string; note: string; taint: string[] }[]
    >`
      select key, room_id as "roomId", reason, requester, chain, note, taint from wakes where agent = ${agent} order by id`;
  const nextOf = async (id: number) => {
    const [row] = await database().sql<{ next: Date | null }[]>`select next_at as next from schedules where id = ${id}`;
    return row?.next;
  };

  describe("what is due", () => {
    it("wakes the agent in its conversation with the text, for whoever made it", async () => {
      const { agent, ann, add, roomId } = await newScene();
      const { id, nextAt } = await add({ text: "water <the> plants", taint: ["@eve:test"] });
      const { schedules, woken } = newRinger();
      await schedules.ring();
      expect(woken).toContainEqual({ agent: agent.name, roomId });
      const key = `schedule:${id}:${nextAt.toISOString()}`;
      const timestamp = nextAt.toISOString().replace(/\.\d+/, "");
      expect(await wakesOf(agent.name)).toEqual([
        {
          key,
          roomId,
          reason: "schedule",
          requester: ann,
          chain: key,
          note: `<systemEvent timestamp="${timestamp}" schedule="${id}" madeBy="${ann}" roomId="${roomId}" tainted>water &lt;the> plants</systemEvent>`,
          taint: ["@eve:test"],
        },
      ]);
      expect(await nextOf(id)).toBeNull();
    });

    it("rings once, whichever of four processes is first", async () => {
      const { agent, add } = await newScene();
      for (let i = 0; i < 10; i++) await add({ cron: "* * * * *" });
      await Promise.all([1, 2, 3, 4].map(() => newRinger().schedules.ring()));
      const keys = (await wakesOf(agent.name)).map(({ key }) => key);
      expect(new Set(keys).size).toBe(10);
      expect(keys).toHaveLength(10);
    });

    it("rings once for all the times that went by, and then at the next", async () => {
      const { agent, add } = await newScene();
      const { id } = await add({ cron: "*/5 * * * *", nextAt: new Date(systemClock.now().getTime() - 24 * hour) });
      await newRinger().schedules.ring();
      await newRinger().schedules.ring();
      expect(await wakesOf(agent.name)).toHaveLength(1);
      const next = await nextOf(id);
      expect(next?.getTime()).toBeGreaterThan(systemClock.now().getTime());
      expect(next?.getMinutes()).toSatisfy((minute: number) => minute % 5 === 0);
    });

    it("waits while the agent is paused, and rings once when it is not any more", async () => {
      const { agent, add } = await newScene();
      await add({ cron: "* * * * *" });
      const agents = new Agents(database());
      await agents.setPaused(agent.name, true);
      await newRinger().schedules.ring();
      expect(await wakesOf(agent.name)).toEqual([]);
      await agents.setPaused(agent.name, false);
      await newRinger().schedules.ring();
      expect(await wakesOf(agent.name)).toHaveLength(1);
    });

    it("does not ring again in place of one that was removed, nor for an agent that was", async () => {
      const { agent, add } = await newScene();
      const removed = await add();
      expect(await table().remove(agent.name, removed.id)).toBe(true);
      expect(await table().remove(agent.name, removed.id)).toBe(false);
      await add();
      await new Agents(database()).remove(agent.name);
      await newRinger().schedules.ring();
      expect(await wakesOf(agent.name)).toEqual([]);
    });

    it("is told in how many milliseconds it comes, by the database's clock", async () => {
      const { add } = await newScene();
      await add({ nextAt: new Date(systemClock.now().getTime() + 5_000) });
      const wait = await newRinger().schedules.ring();
      expect(wait).toBeGreaterThan(0);
      expect(wait).toBeLessThanOrEqual(5_100);
    });
  });

  describe("a schedule ends", () => {
    const noticesIn = async (roomId: RoomId) =>
      (
        await database().sql<{ body: string }[]>`select content->>'body' as body from outbox where room_id = ${roomId}`
      ).map(({ body }) => body);

    it("when whoever made it may not talk to agents any more; the room and the operators are told once", async () => {
      const { agent, add, ann, roomId } = await newScene();
      const { id } = await add({ cron: "* * * * *" });
      const { schedules, told } = newRinger("none");
      await schedules.ring();
      await schedules.ring();
      const notice = `Schedule ${id}, made by ${ann}, has ended: ${ann} may not talk to me any more.`;
      expect(await noticesIn(roomId)).toEqual([notice]);
      expect(told.filter((text) => text.includes(agent.userId))).toEqual([`${agent.userId}: ${notice}`]);
      expect(await wakesOf(agent.name)).toEqual([]);
      expect(await nextOf(id)).toBeNull();
    });

    it("when whoever made it has left the room", async () => {
      const { add, agent, ann, roomId } = await newScene();
      const { id } = await add();
      await setMember(database(), roomId, ann, "leave");
      await newRinger().schedules.ring();
      expect(await noticesIn(roomId)).toEqual([expect.stringContaining(`${ann} has left this room`)]);
      expect(await wakesOf(agent.name)).toEqual([]);
      expect(await nextOf(id)).toBeNull();
    });

    it("when the agent has left the room, in silence there", async () => {
      const { add, agent, roomId } = await newScene();
      await add();
      await setMember(database(), roomId, agent.userId, "leave");
      const { schedules, told } = newRinger();
      await schedules.ring();
      expect(await noticesIn(roomId)).toEqual([]);
      expect(told.filter((text) => text.includes(agent.userId))).toHaveLength(1);
    });

    it("not when somebody made it who was never in the room, such as one who approved it elsewhere", async () => {
      const { add, agent } = await newScene();
      await add({ madeBy: newUser() });
      await newRinger().schedules.ring();
      expect(await wakesOf(agent.name)).toHaveLength(1);
    });
  });

  describe("a note", () => {
    it("is withheld where not everybody may read what it was made from", async () => {
      const { add, agent, roomId } = await newScene();
      await add({ sources: [roomId, newRoom()] });
      await newRinger().schedules.ring();
      const turn = await new Turns(database(), "process").claim({ agent: agent.name, roomId }, 4);
      expect(turn).toMatchObject({ reason: "schedule", wakes: [{ isWithheld: true }] });
    });

    it("is shown where it was made, and at home", async () => {
      const { add, agent, roomId } = await newScene();
      await add();
      await add({ roomId: HOME, sources: [HOME] });
      await newRinger().schedules.ring();
      const turns = new Turns(database(), "process");
      for (const place of [roomId, HOME]) {
        const turn = await turns.claim({ agent: agent.name, roomId: place }, 4);
        expect(turn).toMatchObject({
          wakes: [{ isWithheld: false, note: expect.stringContaining("water the plants") }],
        });
      }
    });
  });

  describe("the table", () => {
    it("has one for one call, however often it is run", async () => {
      const { draft, seat } = await newScene();
      const once = draft();
      const first = await table().add(once);
      expect(await table().add({ ...once, text: "something else" })).toEqual(first);
      expect(await table().find(once.key)).toEqual(first);
      expect(await table().list(seat)).toEqual([first]);
    });

    it("has no more of one agent than it may have", async () => {
      const { add, agent, draft } = await newScene();
      const first = await add();
      for (let i = 1; i < schedulesMax; i++) await add();
      expect(await table().add(draft())).toBeUndefined();
      await table().remove(agent.name, first.id);
      expect(await table().add(draft())).toBeDefined();
    });

    it("lists the next first, and what was made in rooms that not everybody here may read nowhere else", async () => {
      const { add, agent, ann, roomId, seat } = await newScene();
      const later = await add({ nextAt: new Date("2100-01-01") });
      const sooner = await add({ nextAt: new Date("2099-01-01") });
      const other = newRoom();
      await setMember(database(), other, agent.userId, "join");
      const elsewhere = await add({ roomId: other, sources: [other] });
      const made = await add({ sources: [roomId, other] });
      const ids = async (here: RoomId) => (await table().list({ ...seat, here })).map(({ id }) => id);
      expect(await ids(roomId)).toEqual([sooner.id, later.id]);
      await setMember(database(), other, ann, "join");
      expect(new Set(await ids(roomId))).toEqual(new Set([elsewhere.id, made.id, sooner.id, later.id]));
      expect(await ids(HOME)).toEqual([]);
    });

    it("is emptied with the agent's erasure", async () => {
      const { add, agent } = await newScene();
      const { key } = await add();
      await new Agents(database()).erase(agent.name);
      expect(await table().find(key)).toBeUndefined();
    });
  });
});
