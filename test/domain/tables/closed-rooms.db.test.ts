import { describe, expect, it } from "vitest";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { History } from "../../../src/domain/tables/history.ts";
import { JoinRules } from "../../../src/domain/tables/join-rules.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { ScheduleTable } from "../../../src/domain/tables/schedules.ts";
import { Past } from "../../../src/domain/tables/scrollback.ts";
import { Sights } from "../../../src/domain/tables/sight.ts";
import { Todos } from "../../../src/domain/tables/todos.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { Windows } from "../../../src/domain/tables/windows.ts";
import { onEachDatabase } from "../../support/database.ts";
import {
  addAgent,
  call,
  newKey,
  newRoom,
  newUser,
  setMember,
  settleEvent,
  storeEvent,
  wake,
} from "../../support/rows.ts";

onEachDatabase((database) => {
  const setState = (roomId: RoomId, type: string, content: Record<string, unknown>, position?: number) =>
    settleEvent(
      database(),
      { roomId, type, stateKey: "", content: content as never, position },
      { state: { type, content: content as never, sender: "@ann:test" as UserId } },
    );
  const setRule = (roomId: RoomId, join_rule: unknown, ...allowed: readonly RoomId[]) =>
    setState(roomId, "m.room.join_rules", {
      join_rule,
      ...(allowed.length > 0 && { allow: allowed.map((room_id) => ({ type: "m.room_membership", room_id })) }),
    });
  const setVisibility = (roomId: RoomId, history_visibility: string, position?: number) =>
    setState(roomId, "m.room.history_visibility", { history_visibility }, position);
  const audienceOf = (roomId: RoomId, owner = newUser()) => new History(database()).audience(roomId, owner);
  const mayRead = async (audience: UserId[], source: RoomId, owner = newUser()): Promise<unknown> => {
    const [row] = await database().sql`select may_read(${audience}, ${source}, ${owner}) as may`;
    return row?.may;
  };

  describe("a room that anybody may read or join", () => {
    const prepare = async () => {
      const [roomId, ann, agent] = [newRoom(), newUser(), await addAgent(database())];
      for (const userId of [ann, agent.userId]) await setMember(database(), roomId, userId, "join");
      return { roomId, ann, agent };
    };
    const isOpen = async (roomId: RoomId) => (await audienceOf(roomId)).includes(`*${roomId}` as UserId);

    it.each([
      ["invite", false],
      ["knock", false],
      ["public", true],
      ["private", true],
      ["something new", true],
      [{ public: true }, true],
      [undefined, true],
    ])("by its rule for joining: %s → %s", async (rule, isExpected) => {
      const { roomId } = await prepare();
      await setRule(roomId, rule);
      expect(await isOpen(roomId)).toBe(isExpected);
    });

    it.each(["world_readable", "shared", "joined", "invited"])("by its history: %s", async (visibility) => {
      const { roomId } = await prepare();
      await setRule(roomId, "invite");
      await setVisibility(roomId, visibility);
      expect(await isOpen(roomId)).toBe(visibility === "world_readable");
    });

    it("opens and closes with its rules", async () => {
      const { roomId } = await prepare();
      await setRule(roomId, "public");
      await setRule(roomId, "invite");
      expect(await isOpen(roomId)).toBe(false);
      await setRule(roomId, "public");
      expect(await isOpen(roomId)).toBe(true);
    });

    describe.each(["restricted", "knock_restricted"])("where only members of other rooms may join: %s", (rule) => {
      it("is closed as long as all of these are, and we know that of them", async () => {
        const { roomId, agent } = await prepare();
        const [club, lobby] = [newRoom(), newRoom()];
        await setRule(roomId, rule, club, lobby);
        for (const door of [club, lobby]) {
          expect(await isOpen(roomId)).toBe(true);
          await setMember(database(), door, agent.userId, "join");
          await setRule(door, "invite");
        }
        expect(await isOpen(roomId)).toBe(false);
        await setRule(lobby, "public");
        expect(await isOpen(roomId)).toBe(true);
        await setRule(lobby, "knock");
        expect(await isOpen(roomId)).toBe(false);
        // Nobody tells us of its rules any more.
        await setMember(database(), lobby, agent.userId, "leave");
        expect(await isOpen(roomId)).toBe(true);
      });

      it("through any number of them, and in a circle", async () => {
        const { roomId, agent } = await prepare();
        const [club, lobby] = [newRoom(), newRoom()];
        for (const door of [club, lobby]) await setMember(database(), door, agent.userId, "join");
        await setRule(roomId, rule, club);
        await setRule(club, rule, lobby);
        await setRule(lobby, rule, roomId, club);
        expect(await isOpen(roomId)).toBe(false);
        await setRule(lobby, "public");
        expect(await isOpen(roomId)).toBe(true);
      });

      it("is by invitation alone where it names none, and open where it names what we do not know", async () => {
        const { roomId } = await prepare();
        await setRule(roomId, rule);
        expect(await isOpen(roomId)).toBe(false);
        await setState(roomId, "m.room.join_rules", { join_rule: rule, allow: [{ type: "org.example.anybody" }] });
        expect(await isOpen(roomId)).toBe(true);
      });
    });

    it("shows nothing of another room, nor of the home, whoever is in it", async () => {
      const { roomId, ann, agent } = await prepare();
      const other = newRoom();
      await setMember(database(), other, ann, "join");
      expect(await mayRead(await audienceOf(roomId, agent.owner), other)).toBe(true);
      await setRule(roomId, "public");
      const audience = await audienceOf(roomId, agent.owner);
      expect(await mayRead(audience, other)).toBe(false);
      expect(await mayRead(audience, HOME, ann)).toBe(false);
      expect(await mayRead(audience, ann as string as RoomId)).toBe(false);
      // Its people still see elsewhere what is said here.
      expect(await mayRead(audience, roomId)).toBe(true);
      expect(await mayRead(await audienceOf(other), roomId)).toBe(true);
    });

    it("shows nothing of another one that is open, too", async () => {
      const [one, two] = [await prepare(), newRoom()];
      await setMember(database(), two, one.ann, "join");
      for (const roomId of [one.roomId, two]) await setRule(roomId, "public");
      expect(await mayRead(await audienceOf(one.roomId, one.agent.owner), two)).toBe(false);
    });

    it("is a place where what was shown elsewhere may not be said", async () => {
      const { roomId, ann, agent } = await prepare();
      const other = newRoom();
      await setMember(database(), other, ann, "join");
      const passage = (sources: RoomId[]) =>
        new Rooms(database()).passage(other, { place: roomId, sources, owner: agent.owner });
      expect(await passage([other, roomId])).toMatchObject({ isHeard: true, mayRead: true });
      await setRule(roomId, "public");
      expect(await passage([other, roomId])).toMatchObject({ isHeard: true, mayRead: false });
      await setMember(database(), roomId, ann, "leave");
      expect(await passage([roomId])).toMatchObject({ isHeard: false });
    });

    it("is seen so in a look at it: rooms, thoughts, todos", async () => {
      const { roomId, ann, agent } = await prepare();
      const other = newRoom();
      for (const userId of [ann, agent.userId]) await setMember(database(), other, userId, "join");
      await settleEvent(database(), { roomId: other });
      await new Todos(database()).add({ agent: agent.name, owner: agent.owner, here: roomId }, ["a"], {
        key: newKey(),
        sources: [roomId, other],
      });
      const seen = async () => {
        const { events, rooms, todos, members } = await lookAt(agent, roomId);
        const elsewhere = [...events, ...members].filter((one) => one.roomId === other).length;
        return {
          isElsewhere: elsewhere > 0,
          open: rooms.filter(({ isReadable }) => isReadable).length,
          todos: todos.length,
        };
      };
      expect(await seen()).toEqual({ isElsewhere: true, open: 2, todos: 1 });
      await setRule(roomId, "public");
      expect(await seen()).toEqual({ isElsewhere: false, open: 1, todos: 0 });
    });

    it("counts as open, where we were in it before its rules were kept, until they are read", async () => {
      const { roomId, agent } = await prepare();
      const joinRules = new JoinRules(database());
      await database().sql`
        insert into room_state (room_id, type, content, sender, position) values (${roomId}, 'm.room.join_rules', '{}', '', -1)`;
      expect(await isOpen(roomId)).toBe(true);
      expect(await joinRules.findUnread(agent.userId)).toEqual([roomId]);
      await joinRules.keep(roomId, { join_rule: "invite" }, agent.userId);
      expect(await isOpen(roomId)).toBe(false);
      expect(await joinRules.findUnread(agent.userId)).toEqual([]);
      await joinRules.keep(roomId, { join_rule: "public" }, agent.userId);
      expect(await isOpen(roomId)).toBe(false);
    });
  });

  type AnAgent = Awaited<ReturnType<typeof addAgent>>;
  const lookAt = (agent: AnAgent, here: RoomId) =>
    new Sights(database()).see({
      agent: agent.name,
      userId: agent.userId,
      owner: agent.owner,
      here,
      turnId: 0,
      always: [],
      first: [],
      since: null,
      rooms: 10,
      eventsAtFirst: 60,
      eventsPerRoom: 50,
      membersPerRoom: 10,
      entries: 50,
      isLogged: false,
      base: undefined,
      reading: {},
    });

  describe("people who may come in without being asked", () => {
    const prepare = async (rule = "invite") => {
      const [roomId, secret, club, ann, eve, agent] = [
        newRoom(),
        newRoom(),
        newRoom(),
        newUser(),
        newUser(),
        await addAgent(database()),
      ];
      for (const userId of [ann, agent.userId]) {
        for (const room of [roomId, secret, club]) await setMember(database(), room, userId, "join");
      }
      await setRule(club, "invite");
      await setRule(roomId, rule, ...(rule === "invite" ? [] : [club]));
      const audience = () => audienceOf(roomId, agent.owner);
      const sees = async (source: RoomId) => mayRead(await audience(), source, agent.owner);
      return { roomId, secret, club, ann, eve, agent, audience, sees };
    };

    it("are there from their invitation on, until they decline it", async () => {
      const { roomId, secret, eve, agent, sees } = await prepare();
      expect(await sees(secret)).toBe(true);
      await setMember(database(), roomId, eve, "invite");
      expect(await sees(secret)).toBe(false);
      expect((await lookAt(agent, roomId)).rooms.filter(({ isReadable }) => isReadable)).toHaveLength(1);
      await setMember(database(), roomId, eve, "leave");
      expect(await sees(secret)).toBe(true);
    });

    it("are told of what they may read elsewhere", async () => {
      const { roomId, secret, eve, sees } = await prepare();
      await setMember(database(), roomId, eve, "invite");
      await setMember(database(), secret, eve, "join");
      expect(await sees(secret)).toBe(true);
      await setMember(database(), secret, eve, "invite");
      expect(await sees(secret)).toBe(false);
    });

    it.each(["shared", "joined"])("close nothing of the room itself, whose history is %s", async (visibility) => {
      const { roomId, eve, ann, agent, sees, audience } = await prepare("restricted");
      await setVisibility(roomId, visibility);
      const { eventId } = await settleEvent(database(), { roomId });
      await setMember(database(), roomId, eve, "invite");
      expect(await sees(roomId)).toBe(true);
      const { events } = await lookAt(agent, roomId);
      expect(events.map((event) => event.eventId)).toContain(eventId);
      const hearing = { here: roomId, audience: await audience(), sources: [roomId], owner: agent.owner };
      expect(await new Rooms(database()).mayHear(hearing)).toBe(true);
      expect(await audience()).toContain(ann);
    });

    it("are nobody to whom something could be said", async () => {
      const { roomId, secret, ann, eve, agent } = await prepare();
      await setMember(database(), roomId, eve, "invite");
      await setMember(database(), roomId, ann, "leave");
      const passage = { place: roomId, sources: [], owner: agent.owner };
      expect(await new Rooms(database()).passage(secret, passage)).toMatchObject({ isHeard: false });
    });

    it("may not be told on as soon as the homeserver has told of their invitation", async () => {
      const { roomId, secret, eve, agent, audience } = await prepare();
      const hearing = { here: roomId, audience: await audience(), sources: [roomId, secret], owner: agent.owner };
      const mayHear = () => new Rooms(database()).mayHear(hearing);
      expect(await mayHear()).toBe(true);
      const fields = { roomId, type: "m.room.member", stateKey: eve, content: { membership: "invite" } };
      await storeEvent(database(), fields);
      expect(await mayHear()).toBe(false);
    });

    it("do not read what was said in another room before they came there", async () => {
      const { roomId, secret, eve, agent } = await prepare();
      await setVisibility(secret, "joined", 1);
      const { eventId } = await settleEvent(database(), { roomId: secret });
      await setMember(database(), secret, eve, "join");
      const seen = async () => (await lookAt(agent, roomId)).events.some((one) => one.eventId === eventId);
      expect(await seen()).toBe(true);
      await setMember(database(), roomId, eve, "invite");
      expect(await seen()).toBe(false);
    });

    describe.each(["restricted", "knock_restricted"])("as members of another room: %s", (rule) => {
      it("are there as long as they are in that one, or invited to it", async () => {
        const { secret, club, eve, sees } = await prepare(rule);
        expect(await sees(secret)).toBe(true);
        for (const membership of ["join", "invite"] as const) {
          await setMember(database(), club, eve, membership);
          expect(await sees(secret)).toBe(false);
          expect(await sees(club)).toBe(membership === "join");
          await setMember(database(), club, eve, "leave");
        }
        expect(await sees(secret)).toBe(true);
      });

      it("through any number of them", async () => {
        const { secret, club, eve, agent, sees } = await prepare(rule);
        const lobby = newRoom();
        await setMember(database(), lobby, agent.userId, "join");
        await setMember(database(), lobby, eve, "join");
        await setRule(lobby, "invite");
        expect(await sees(secret)).toBe(true);
        await setRule(club, rule, lobby);
        expect(await sees(secret)).toBe(false);
        await setMember(database(), secret, eve, "join");
        expect(await sees(secret)).toBe(true);
      });

      it("do not read what was said in another room before they came there", async () => {
        const { roomId, secret, club, eve, agent } = await prepare(rule);
        await setVisibility(secret, "joined", 1);
        const { eventId } = await settleEvent(database(), { roomId: secret });
        const seen = async () => (await lookAt(agent, roomId)).events.some((one) => one.eventId === eventId);
        expect(await seen()).toBe(true);
        await setMember(database(), secret, eve, "join");
        await setMember(database(), club, eve, "join");
        expect(await seen()).toBe(false);
      });

      it("close nothing of the room itself", async () => {
        const { roomId, club, eve, sees } = await prepare(rule);
        await setMember(database(), club, eve, "join");
        expect(await sees(roomId)).toBe(true);
      });
    });
  });

  describe("owners of other agents in a room", () => {
    const prepare = async () => {
      const [roomId, other, ann, zoe] = [newRoom(), newRoom(), newUser(), newUser()];
      const [mine, theirs] = [await addAgent(database()), await addAgent(database(), zoe)];
      for (const userId of [ann, mine.userId, theirs.userId]) await setMember(database(), roomId, userId, "join");
      for (const userId of [ann, mine.userId]) await setMember(database(), other, userId, "join");
      return { roomId, other, ann, zoe, mine, theirs };
    };

    it("hear what is said there: their thoughts rooms show it", async () => {
      const { roomId, other, ann, mine, theirs, zoe } = await prepare();
      expect(await audienceOf(roomId, mine.owner)).toEqual([`*${zoe}`, ann]);
      expect(await mayRead(await audienceOf(roomId, mine.owner), other)).toBe(false);
      expect((await lookAt(mine, roomId)).rooms.map(({ isReadable }) => isReadable)).toEqual([true, false]);
      await setMember(database(), roomId, theirs.userId, "leave");
      expect(await mayRead(await audienceOf(roomId, mine.owner), other)).toBe(true);
    });

    it("may hear of what they read themselves, or another agent of theirs hears", async () => {
      const { roomId, other, mine, theirs, zoe } = await prepare();
      await setMember(database(), other, theirs.userId, "join");
      expect(await mayRead(await audienceOf(roomId, mine.owner), other)).toBe(true);
      await setMember(database(), other, theirs.userId, "leave");
      await setMember(database(), other, zoe, "join");
      expect(await mayRead(await audienceOf(roomId, mine.owner), other)).toBe(true);
      // By their own name they read what they are in, and nothing else.
      await setMember(database(), other, zoe, "leave");
      await setMember(database(), other, theirs.userId, "join");
      expect(await mayRead([zoe], other)).toBe(false);
    });

    it("who are there themselves are one of the people there; whose own agent looks is none of them", async () => {
      const { roomId, ann, theirs, zoe } = await prepare();
      expect((await audienceOf(roomId, theirs.owner)).filter((one) => one.includes(zoe))).toEqual([]);
      await setMember(database(), roomId, zoe, "join");
      expect(await audienceOf(roomId, newUser())).toEqual(expect.arrayContaining([ann, zoe]));
      expect(await audienceOf(roomId, newUser())).not.toContain(`*${zoe}`);
    });

    it("do not count once their agent is deleted", async () => {
      const { roomId, zoe, mine, theirs } = await prepare();
      await database().sql`update agents set deleted_at = now() where name = ${theirs.name}`;
      expect(await new Agents(database()).find(theirs.name)).toBeUndefined();
      expect(await audienceOf(roomId, mine.owner)).not.toContain(`*${zoe}`);
    });

    it("came when their first agent did", async () => {
      const { roomId, ann, zoe } = await prepare();
      await setVisibility(roomId, "joined", 1);
      const second = await addAgent(database(), zoe);
      await setMember(database(), roomId, second.userId, "join", 9_000_000);
      const [row] = await database().sql<{ isSame: boolean }[]>`
        select arrival_of(${[`*${zoe}`]}, ${roomId}) = (select min(joined_position) from members m join agents a using (user_id)
          where a.owner = ${zoe} and room_id = ${roomId}) as "isSame"`;
      expect(row?.isSame).toBe(true);
      expect(await mayRead([ann], roomId)).toBe(true);
    });
  });

  describe("an event keeps the visibility that was in force when it came", () => {
    const prepare = async () => {
      const [roomId, early, late, agent] = [newRoom(), newUser(), newUser(), await addAgent(database())];
      for (const userId of [agent.userId, early]) await setMember(database(), roomId, userId, "join", 1);
      const say = async (position: number) => (await settleEvent(database(), { roomId, position })).eventId;
      const seen = async () => {
        const { events } = await lookAt(agent, roomId);
        const lines = await new Past(database()).lines(
          { agent: agent.name, userId: agent.userId, owner: agent.owner, here: roomId },
          { roomId, bottom: 1_000, count: 1_000 },
        );
        const ids = (list: readonly { type: string; eventId: string }[]) =>
          list.filter(({ type }) => type === "m.room.message").map(({ eventId }) => eventId);
        expect(ids(lines)).toEqual(ids(events));
        return ids(events);
      };
      const joins = (position: number) => setMember(database(), roomId, late, "join", position);
      return { roomId, say, seen, joins };
    };

    it("what was said while the history was closed stays closed when it is opened", async () => {
      const { roomId, say, seen, joins } = await prepare();
      await setVisibility(roomId, "joined", 2);
      const [closed] = [await say(10)];
      await setVisibility(roomId, "shared", 20);
      const open = await say(30);
      expect(await seen()).toEqual([closed, open]);
      await joins(40);
      expect(await seen()).toEqual([open]);
    });

    it("and what was said while it was open stays open when it is closed", async () => {
      const { roomId, say, seen, joins } = await prepare();
      await setVisibility(roomId, "shared", 2);
      const before = await say(10);
      await setVisibility(roomId, "invited", 20);
      await say(30);
      await joins(40);
      const after = await say(50);
      expect(await seen()).toEqual([before, after]);
    });

    it("also where the change is found late", async () => {
      const { roomId, say, seen, joins } = await prepare();
      await setVisibility(roomId, "shared", 2);
      const [before, between, after] = [await say(10), await say(30), await say(60)];
      await setVisibility(roomId, "shared", 50);
      await joins(55);
      expect(await seen()).toEqual([before, between, after]);
      await setVisibility(roomId, "joined", 20);
      expect(await seen()).toEqual([before, after]);
    });

    it("before the first that is known, as there", async () => {
      const { roomId, say, seen, joins } = await prepare();
      await say(10);
      await joins(20);
      await new Rooms(database()).adopt(
        roomId,
        {
          members: [],
          state: [
            {
              type: "m.room.history_visibility",
              content: { history_visibility: "joined" },
              sender: "@ann:test" as UserId,
            },
          ],
        },
        30,
      );
      expect(await seen()).toEqual([]);
    });
  });

  describe("what was made in a room whose history is closed, before somebody came", () => {
    const prepare = async (visibility: string) => {
      const [roomId, early, late, agent] = [newRoom(), newUser(), newUser(), await addAgent(database())];
      await setVisibility(roomId, visibility);
      for (const userId of [agent.userId, early]) await setMember(database(), roomId, userId, "join");
      const seat = { agent: agent.name, userId: agent.userId, owner: agent.owner, here: roomId };
      const turns = new Turns(database(), "test");
      const begin = async () => {
        await wake(database(), { agent: agent.name, roomId });
        const turn = await turns.claim({ agent: agent.name, roomId }, 10);
        if (typeof turn === "string") throw new Error(turn);
        return turn;
      };
      /** One of each. */
      const make = async () => {
        const turn = await begin();
        const todo = { key: newKey(), sources: [roomId] };
        await new Todos(database()).add(seat, ["todo"], todo);
        const done = { ...call(), n: 0, callId: "fc1", state: "done" as const, todo: 1 };
        const step = { n: 0, name: "model", result: {}, sources: [roomId], ends: true };
        await turns.commit(turn, { ...step, ephemeris: ["thought"], operations: [done] });
        await new Windows(database()).open(seat, {
          srcType: "search",
          src: "q",
          arguments: newKey(),
          contentType: "text/plain",
          content: "found",
          sources: [roomId],
          taint: [],
          height: 20,
          turnsLeft: 9,
          key: newKey(),
        });
        await new ScheduleTable(database()).add({
          key: newKey(),
          agent: agent.name,
          roomId,
          cron: null,
          timeZone: "UTC",
          text: "schedule",
          madeBy: early,
          sources: [roomId],
          taint: [],
          nextAt: new Date("2999-01-01"),
        });
      };
      const openFile = (name: string) =>
        new Windows(database()).open(seat, {
          srcType: "file",
          src: `rooms:/${roomId}/${name}`,
          arguments: "",
          title: "secret",
          contentType: "text/plain",
          content: null,
          sources: [roomId],
          taint: [],
          height: 20,
          turnsLeft: 9,
          key: newKey(),
        });
      const look = async () => (await lookAt(agent, roomId)).desk;
      const seen = async () => {
        const { ephemeris, todos, desk } = await lookAt(agent, roomId);
        const audience = await audienceOf(roomId, agent.owner);
        const operations = await new Operations(database()).newest({ agent: agent.name, roomId }, 50);
        const allowed = await Promise.all(
          operations.map(({ sources, place }) =>
            new History(database()).mayReadAll(audience, [...sources, roomId], agent.owner, place),
          ),
        );
        const records = await Promise.all([1, 2].map((number) => new Todos(database()).record(seat, number)));
        return {
          thoughts: ephemeris.length,
          remembered: (await new Past(database()).thoughts(seat, 50)).length,
          todos: todos.length,
          listed: (await new Todos(database()).list(seat)).length,
          recorded: records.filter((record) => record !== undefined).length,
          done: records.flatMap((record) => record?.operations ?? []).length,
          operations: allowed.filter(Boolean).length,
          windows: desk.windows.filter(({ isOpen }) => isOpen).length,
          schedules: (await new ScheduleTable(database()).list(seat)).length,
        };
      };
      const joins = () => setMember(database(), roomId, late, "join");
      return { roomId, make, seen, joins, late, begin, turns, look, openFile };
    };
    const all = (n: number) => ({
      thoughts: n,
      remembered: n,
      todos: n,
      listed: n,
      recorded: n,
      operations: n,
      windows: n,
      schedules: n,
    });

    it.each(["joined", "invited"])("is closed while they are there: %s", async (visibility) => {
      const { make, seen, joins, late, roomId } = await prepare(visibility);
      await make();
      expect(await seen()).toEqual({ ...all(1), done: 1 });
      await joins();
      expect(await seen()).toEqual({ ...all(0), done: 0 });
      await make();
      expect(await seen()).toEqual({ ...all(1), done: 0 });
      await setMember(database(), roomId, late, "leave");
      expect(await seen()).toEqual({ ...all(2), done: 2 });
    });

    it("tells by no window what a file was called that is no more, nor by a title of one that is", async () => {
      const { roomId, joins, late, look, openFile } = await prepare("joined");
      const files = new Files(database());
      const write = (name: string) =>
        files.write({ share: "rooms", path: `/${roomId}/${name}`, contentType: "text/plain", text: "x", owner: late });
      for (const name of ["gone.md", "kept.md"]) {
        await write(name);
        await openFile(name);
      }
      await files.remove("rooms", [`/${roomId}/gone.md`], newKey());
      const windows = async () => (await look()).windows.map(({ isOpen, src, title }) => isOpen && `${src} ${title}`);
      expect(await windows()).toEqual([`rooms:/${roomId}/gone.md secret`, `rooms:/${roomId}/kept.md secret`]);
      await joins();
      expect(await windows()).toEqual([false, false]);
      await write("kept.md");
      expect(await windows()).toEqual([false, `rooms:/${roomId}/kept.md null`]);
    });

    it("is open where the history is", async () => {
      const { make, seen, joins } = await prepare("shared");
      await make();
      await joins();
      expect(await seen()).toEqual({ ...all(1), done: 1 });
    });

    it("is closed also if only its turn had begun before", async () => {
      const { seen, joins, begin, turns, roomId } = await prepare("joined");
      const turn = await begin();
      await joins();
      const done = { ...call(), n: 0, callId: "fc1", state: "done" as const };
      const step = { n: 0, name: "model", result: {}, sources: [roomId], ends: true };
      await turns.commit(turn, { ...step, ephemeris: ["thought"], operations: [done] });
      expect(await seen()).toMatchObject({ thoughts: 0, remembered: 0, operations: 0 });
    });

    it("is withheld from a wake, too", async () => {
      const { roomId, joins, begin, turns } = await prepare("joined");
      const [{ agent }] = [
        await begin().then((turn) => turns.commit(turn, { n: 0, name: "m", result: {}, ends: true }).then(() => turn)),
      ];
      await wake(database(), { agent, roomId }, { note: "<systemEvent>secret</systemEvent>", sources: [] });
      await joins();
      const turn = await turns.claim({ agent, roomId }, 10);
      expect(turn).toMatchObject({ wakes: [{ isWithheld: true }] });
    });
  });

  it("what was shown of a closed history is not carried to those who came into it later", async () => {
    const [vault, lounge, early, late, owner] = [newRoom(), newRoom(), newUser(), newUser(), newUser()];
    await setVisibility(vault, "joined", 1);
    for (const roomId of [vault, lounge]) await setMember(database(), roomId, early, "join", 10);
    await setMember(database(), vault, late, "join", 20);
    await setMember(database(), lounge, late, "join", 30);
    const home = newRoom();
    await setMember(database(), home, early, "join");
    const passage = async (place: RoomId) =>
      (await new Rooms(database()).passage(home, { place, sources: [vault], owner })).mayRead;
    expect(await passage(lounge)).toBe(false);
    await setMember(database(), lounge, late, "leave", 40);
    expect(await passage(lounge)).toBe(true);
  });
});
