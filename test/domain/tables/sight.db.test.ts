import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Sights } from "../../../src/domain/tables/sight.ts";
import type { Look } from "../../../src/domain/tables/sight-query.ts";
import { onEachDatabase } from "../../support/database.ts";
import {
  addAgent,
  newEventId,
  newKey,
  newRoom,
  newUser,
  setMember,
  settleEvent,
  storeEvent,
} from "../../support/rows.ts";

/** Rooms, agents and people among whom something happens; `pick` chooses one by a number. */
interface World {
  readonly agents: readonly AgentRow[];
  readonly people: readonly UserId[];
  readonly rooms: readonly RoomId[];
}

/** Numbers by which a change chooses what it changes, and how. */
type Dice = readonly [number, number, number];

const pick = <Item>(items: readonly Item[], number: number): Item => {
  const item = items[number % items.length];
  if (item === undefined) throw new Error("there is nothing to choose from");
  return item;
};

const lookOf = ({ name, owner, userId }: AgentRow, here: RoomId, fields: Partial<Look> = {}): Look => ({
  agent: name,
  userId,
  owner,
  here,
  scratchpad: undefined,
  turnId: 0,
  always: [],
  first: [],
  since: null,
  rooms: 10,
  eventsAtFirst: 200,
  eventsPerRoom: 200,
  membersPerRoom: 10,
  entries: 100,
  isLogged: true,
  base: undefined,
  reading: {},
  ...fields,
});

onEachDatabase((database) => {
  const events = () => new Events(database());
  const speakersOf = ({ agents, people }: World): UserId[] => [...people, ...agents.map(({ userId }) => userId)];
  const eventsIn = async (roomId: RoomId): Promise<{ eventId: EventId; position: number; sender: UserId }[]> =>
    database()
      .sql`select event_id as "eventId", position, sender from events where room_id = ${roomId} and shown order by position`;
  const fill = async (world: World, roomId: RoomId, count: number): Promise<void> => {
    await database().sql`
      insert into events (event_id, room_id, type, sender, sent_at, content, position, source, shown, routed_at, number)
      select ${newEventId()} || '.' || n, ${roomId}, 'm.room.message', (${speakersOf(world)}::text[])[1 + n % ${speakersOf(world).length}],
        now(), jsonb_build_object('msgtype', 'm.text', 'body', 'text ' || n), nextval('event_seq'), 'push', true, now(),
        n + last_number(${roomId})
      from generate_series(1, ${count}::int) n`;
  };
  const remember = async (agent: AgentRow, roomId: RoomId, sources: readonly RoomId[], count = 1): Promise<void> => {
    await database().sql`
      insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
      select ${agent.userId}, ${roomId}, 1 + n % 5, nextval('event_seq'), 1, '<thought timestamp="t">' || n || '</thought>', ${[...sources]}
      from generate_series(1, ${count}::int) n`;
  };
  const worldOf = async (): Promise<World> => {
    const people = [newUser(), newUser(), newUser()];
    const agents = [await addAgent(database(), people[0]), await addAgent(database(), people[0])];
    const world = { agents, people, rooms: [newRoom(), newRoom()] };
    for (const roomId of world.rooms) {
      for (const userId of speakersOf(world)) await setMember(database(), roomId, userId, "join");
      await fill(world, roomId, 70);
      for (const agent of agents) await remember(agent, roomId, [roomId], 40);
    }
    return world;
  };

  /** Adds an event behind all others, or among them. */
  const say = async (world: World, [a, b, c]: Dice, content: object = {}) => {
    const roomId = pick(world.rooms, a);
    const { position } = pick(await eventsIn(roomId), c);
    const place = c % 4 === 0 ? { position: position + 0.5 + (c % 97) / 1000 } : {};
    return settleEvent(database(), {
      roomId,
      sender: pick(speakersOf(world), b),
      content: { msgtype: "m.text", body: "new", ...content },
      ...place,
    });
  };

  const changes: Readonly<Record<string, (world: World, dice: Dice) => Promise<unknown>>> = {
    say: (world, dice) => say(world, dice),
    "say much": (world, [a, b]) => fill(world, pick(world.rooms, a), 1 + (b % 50)),
    async reply(world, dice) {
      const target = pick(await eventsIn(pick(world.rooms, dice[0])), dice[1]);
      await say(world, dice, { "m.relates_to": { "m.in_reply_to": { event_id: target.eventId } } });
    },
    async "reply to what comes later"(world, dice) {
      const eventId = newEventId();
      const { roomId } = await say(world, dice, { "m.relates_to": { "m.in_reply_to": { event_id: eventId } } });
      if (dice[2] % 2 === 0) await settleEvent(database(), { roomId, eventId });
      else await storeEvent(database(), { roomId, eventId });
    },
    async "route what was put aside"() {
      const [row] = await database().sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from events where routed_at is null limit 1`;
      const event = row && (await events().find(row.eventId));
      if (event) await settle(database(), event, { shownChars: 3 });
    },
    async "put aside"(world, [a, b]) {
      await storeEvent(database(), { roomId: pick(world.rooms, a), sender: pick(speakersOf(world), b) });
    },
    async edit(world, [a, b]) {
      const { eventId } = pick(await eventsIn(pick(world.rooms, a)), b);
      await events().applyEdit(eventId, { msgtype: "m.text", body: `edited ${b}` });
    },
    async redact(world, [a, b]) {
      const { eventId } = pick(await eventsIn(pick(world.rooms, a)), b);
      await events().redact(eventId);
    },
    async "fetch a file"(world, [a, b]) {
      const { eventId } = pick(await eventsIn(pick(world.rooms, a)), b);
      await database().sql`update events set media = '{"state":"missing","reason":"gone"}' where event_id = ${eventId}`;
    },
    async join(world, [a, b, c]) {
      await setMember(database(), pick(world.rooms, a), pick(speakersOf(world), b), c % 3 === 0 ? "leave" : "join");
    },
    async close(world, [a, b]) {
      const content = { history_visibility: b % 2 === 0 ? "joined" : "shared" };
      const sender = pick(world.people, b);
      await settleEvent(
        database(),
        { roomId: pick(world.rooms, a) },
        { state: { type: "m.room.history_visibility", content, sender } },
      );
    },
    async wait(world, [a, b, c]) {
      const roomId = pick(world.rooms, a);
      const { eventId, position } = pick((await eventsIn(roomId)).slice(-10), c);
      const agent = pick(world.agents, b);
      await database().sql`
        insert into wakes (key, agent, room_id, reason, event_id, position, requester, chain)
        values (${newKey()}, ${agent.name}, ${roomId}, 'new event', ${eventId}, ${position}, ${agent.owner}, ${eventId})`;
    },
    async "take what waits"(world, [a, b]) {
      await database().sql`
        delete from wakes where agent = ${pick(world.agents, b).name} and room_id = ${pick(world.rooms, a)} and turn_id is null`;
    },
    async think(world, [a, b, c]) {
      const roomId = pick(world.rooms, a);
      await remember(pick(world.agents, b), roomId, c % 2 === 0 ? [roomId] : world.rooms, 1 + (c % 3));
    },
    async forget(world, [, b, c]) {
      await database().sql`
        delete from ephemeris where id in (
          select id from ephemeris where user_id = ${pick(world.agents, b).userId} order by id offset ${c % 30} limit 1)`;
    },
    async blank(world, [, b, c]) {
      await database().sql`
        update ephemeris set entry = '<thought timestamp="t">(removed)</thought>' where id in (
          select id from ephemeris where user_id = ${pick(world.agents, b).userId} order by id offset ${c % 30} limit 1)`;
    },
    async "move the log"(world, [a, b, c]) {
      const roomId = pick(world.rooms, a);
      const { position } = pick(await eventsIn(roomId), c);
      const log =
        c % 5 === 0 ? null : database().sql.json({ from: { [pick(world.rooms, b)]: position, ephemeris: c % 50 } });
      await database().sql`
        insert into conversations (agent, room_id, seen_position, log) values (${pick(world.agents, b).name}, ${roomId}, 0, ${log})
        on conflict (agent, room_id) do update set log = excluded.log`;
    },
    async "answer in a tainted turn"(world, [a, b, c]) {
      const roomId = pick(world.rooms, a);
      const agent = pick(world.agents, b);
      const key = newKey();
      const event = await settleEvent(database(), {
        roomId,
        sender: agent.userId,
        content: { body: "answer", "org.clevernet.key": key },
      });
      const [turn] = await database().sql<{ id: number }[]>`
        insert into turns (agent, room_id, number, reason, chain, requesters, state, sources, taint, runner, epoch)
        values (${agent.name}, ${roomId}, nextval('event_seq'), 'new event', 'chain', '{}', 'ready', '{}', ${[pick(world.people, c)]}, '', 1)
        returning id`;
      await database().sql`
        insert into outbox (key, room_id, sender, kind, content, turn_id, state, event_id)
        values (${key}, ${roomId}, ${agent.userId}, 'message', '{}', ${turn?.id ?? 0}, ${c % 2 === 0 ? "pending" : "sent"}, ${c % 2 === 0 ? null : event.eventId})`;
    },
    async "end or taint a turn"(world, [, b, c]) {
      const agent = pick(world.agents, b).name;
      await database().sql`
        update turns set taint = taint || ${[pick(world.people, c)]}::text[], ended_at = case when ${c % 2 === 0} then now() end
        where agent = ${agent} and ended_at is null`;
      await database().sql`
        update outbox o set state = 'sent', event_id = e.event_id from events e
        where o.state = 'pending' and e.content->>'org.clevernet.key' = o.key`;
    },
  };

  const dice = fc.tuple(fc.nat(10_000), fc.nat(10_000), fc.nat(10_000));
  const script = fc.array(fc.tuple(fc.constantFrom(...Object.keys(changes)), dice), { minLength: 10, maxLength: 25 });

  describe("a look", () => {
    it("gives the same whether something was read before or not, whatever has happened in between", async () => {
      await fc.assert(
        fc.asyncProperty(script, async (steps) => {
          const world = await worldOf();
          const reader = new Sights(database());
          for (const [name, thrown] of steps) {
            await changes[name]?.(world, thrown);
            const here = pick(world.rooms, thrown[1]);
            const agent = pick(world.agents, thrown[0]);
            const always = thrown[2] % 3 === 0 ? [pick(await eventsIn(here), thrown[0]).eventId] : [];
            const few = thrown[2] % 7 === 0 ? { eventsPerRoom: 40, eventsAtFirst: 20, entries: 20 } : {};
            const look = lookOf(agent, here, { always, ...few, turnId: thrown[0] % 6, isLogged: thrown[2] % 11 !== 0 });
            expect(await reader.see(look), name).toEqual(await new Sights(database()).see(look));
          }
        }),
        { numRuns: 6, endOnFailure: true },
      );
    }, 300_000);

    it("is sent only what has come or changed since the last one", async () => {
      const world = await worldOf();
      const sent: { newEvents: object[]; newEntries: object[] }[] = [];
      const run: Database["run"] = async (statement) => {
        const rows = await database().run(statement);
        sent.push(...(rows as unknown as typeof sent));
        return rows;
      };
      const reader = new Sights({ ...database(), run });
      const [agent, here] = [pick(world.agents, 0), pick(world.rooms, 0)];
      const counts = async () => {
        await reader.see(lookOf(agent, here));
        const { newEvents = [], newEntries = [] } = sent.at(-1) ?? {};
        return [newEvents.length, newEntries.length];
      };
      const whole = await counts();
      expect(whole[0]).toBeGreaterThan(140);
      expect(await counts()).toEqual([0, 0]);
      await settleEvent(database(), { roomId: here });
      await remember(agent, here, [here]);
      expect(await counts()).toEqual([1, 1]);
      const [, second] = await eventsIn(here);
      await events().applyEdit(second?.eventId as EventId, { msgtype: "m.text", body: "edited" });
      const [afterEdit = 0] = await counts();
      expect(afterEdit).toBeLessThan(40);
    });
  });
});
