import { beforeAll, describe, expect, it } from "vitest";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { History } from "../../../src/domain/tables/history.ts";
import { Renders } from "../../../src/domain/tables/renders.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Sights } from "../../../src/domain/tables/sight.ts";
import type { Look } from "../../../src/domain/tables/sight-query.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, newUser, setMember, settleEvent, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  const historyOf = () => new History(database());
  /** One for all, so that what was read before is at hand. */
  let sights: Sights;
  beforeAll(() => {
    sights = new Sights(database());
  });
  const look = (from: Pick<Look, "agent" | "userId" | "owner" | "here"> & Partial<Look>) =>
    sights.see({
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
      ...from,
    });
  const mayRead = async (audience: UserId[], source: RoomId, owner = newUser()): Promise<unknown> => {
    const [row] = await database().sql`select may_read(${audience}, ${source}, ${owner}) as may`;
    return row?.may;
  };
  const floorOf = async (audience: UserId[], source: RoomId): Promise<unknown> => {
    const [row] = await database().sql`select history_floor(${audience}, ${source}) as floor`;
    return row?.floor;
  };
  const setVisibility = (roomId: RoomId, visibility: string) =>
    settleEvent(
      database(),
      { roomId },
      {
        state: {
          type: "m.room.history_visibility",
          content: { history_visibility: visibility },
          sender: "@ann:test" as UserId,
        },
      },
    );

  describe("who may read a room", () => {
    const person = { member: newUser(), other: newUser(), invited: newUser(), gone: newUser(), stranger: newUser() };
    const room = newRoom();
    const { member, other, invited, gone, stranger } = person;
    const prepared = async () => {
      for (const userId of [member, other]) await setMember(database(), room, userId, "join");
      await setMember(database(), room, invited, "invite");
      await setMember(database(), room, gone, "leave");
    };
    it.each([
      ["nobody", [], false],
      ["a member", [member], true],
      ["two members", [member, other], true],
      ["a member and a stranger", [member, stranger], false],
      ["a stranger", [stranger], false],
      ["somebody who is only invited", [invited], false],
      ["somebody who has left", [gone], false],
    ])("%s: %s → %s", async (_who, audience, may) => {
      await prepared();
      expect(await mayRead(audience, room)).toBe(may);
    });

    it("the agent's owner reads no room that they are not in", async () => {
      expect(await mayRead([stranger], room, stranger)).toBe(false);
    });

    it("nobody reads a room that is not known", async () => {
      expect(await mayRead([member], newRoom())).toBe(false);
    });
  });

  describe("who may read the agent's home", () => {
    const [owner, stranger] = [newUser(), newUser()];
    it.each([
      ["nobody", [], false],
      ["its owner", [owner], true],
      ["its owner with a stranger", [owner, stranger], false],
      ["a stranger", [stranger], false],
    ])("%s: %s → %s", async (_who, audience, may) => {
      expect(await mayRead(audience, HOME, owner)).toBe(may);
    });
  });

  describe("where the history begins that an audience may read", () => {
    const arrivals = async (visibility: string | undefined) => {
      const [roomId, early, late] = [newRoom(), newUser(), newUser()];
      await setMember(database(), roomId, early, "join", 10);
      await setMember(database(), roomId, late, "join", 20);
      if (visibility !== undefined) await setVisibility(roomId, visibility);
      return { roomId, early, late };
    };
    it.each([
      ["joined", 10, 20],
      ["invited", 10, 20],
      ["shared", 0, 0],
      ["world_readable", 0, 0],
      [undefined, 0, 0],
    ])(
      "with visibility %s: %d for an early member, %d as soon as a late one is there",
      async (visibility, one, both) => {
        const { roomId, early, late } = await arrivals(visibility);
        expect(await floorOf([early], roomId)).toBe(one);
        expect(await floorOf([early, late], roomId)).toBe(both);
      },
    );

    it("what a turn was shown is closed to whoever may not read an event in it", async () => {
      const [roomId, early, late] = [newRoom(), newUser(), newUser()];
      await setVisibility(roomId, "joined");
      const event = await settleEvent(database(), { roomId });
      await setMember(database(), roomId, early, "join", event.position - 1);
      await setMember(database(), roomId, late, "join", event.position + 1);
      const renders = new Renders(database());
      const turnId = event.seq + 3_000_000;
      const shown = { system: "s", prompt: "p", eventIds: [event.eventId], tools: "[]", subAgent: "clerk" };
      await renders.keep({ turnId, n: 0, toolset: "none", ...shown });
      expect(await renders.of(turnId, [early])).toEqual([{ turnId, n: 0, ...shown }]);
      expect(await renders.of(turnId, [early, late])).toBeUndefined();
    });

    it("somebody who left and came back reads from their return on", async () => {
      const { roomId, early } = await arrivals("joined");
      await setMember(database(), roomId, early, "leave", 30);
      await setMember(database(), roomId, early, "join", 40);
      expect(await floorOf([early], roomId)).toBe(40);
    });

    it("a new display name moves nothing", async () => {
      const { roomId, early } = await arrivals("joined");
      await setMember(database(), roomId, early, "join", 40);
      expect(await floorOf([early], roomId)).toBe(10);
    });
  });

  describe("an agent that comes back into a room whose history is closed", () => {
    /** The agent was there from 10 to 30 and comes back at 50; who is in the room then is read as a snapshot. */
    const comeBack = async (others: readonly UserId[], before: (roomId: RoomId) => Promise<unknown>) => {
      const roomId = newRoom();
      const agent = await addAgent(database());
      await setVisibility(roomId, "joined");
      await setMember(database(), roomId, agent.userId, "join", 10);
      await settleEvent(database(), { roomId, position: 20 });
      await before(roomId);
      await setMember(database(), roomId, agent.userId, "leave", 30);
      const members = others.map((userId) => {
        return { userId, membership: "join", displayName: undefined, isDirect: false, kind: "human" } as const;
      });
      await new Rooms(database()).adopt(roomId, { members, state: [] }, 50);
      return roomId;
    };

    it("does not show its old history to those who arrived in its absence", async () => {
      const newcomer = newUser();
      const roomId = await comeBack([newcomer], async () => {});
      expect(await floorOf([newcomer], roomId)).toBeGreaterThan(20);
    });

    it("does not show what somebody missed who left before it and returned in its absence", async () => {
      const returned = newUser();
      const roomId = await comeBack([returned], async (room) => {
        await setMember(database(), room, returned, "join", 11);
        await setMember(database(), room, returned, "leave", 12);
      });
      expect(await floorOf([returned], roomId)).toBeGreaterThan(20);
    });

    it("shows its old history to those who were there all the time", async () => {
      const loyal = newUser();
      const roomId = await comeBack([loyal], (room) => setMember(database(), room, loyal, "join", 11));
      expect(await floorOf([loyal], roomId)).toBe(11);
    });
  });

  it("an agent that comes for the first time shows what it was given of the past to all who are there", async () => {
    const [roomId, member] = [newRoom(), newUser()];
    await setVisibility(roomId, "invited");
    const [state] = await database().sql`select position from room_state where room_id = ${roomId}`;
    const members = [
      { userId: member, membership: "join", displayName: undefined, isDirect: false, kind: "human" },
    ] as const;
    await new Rooms(database()).adopt(roomId, { members, state: [] }, Number(state?.position) + 100);
    expect(await floorOf([member], roomId)).toBeLessThanOrEqual(Number(state?.position));
  });

  describe("everything that was shown", () => {
    const prepare = async () => {
      const [ann, bob, both, onlyAnn] = [newUser(), newUser(), newRoom(), newRoom()];
      for (const userId of [ann, bob]) await setMember(database(), both, userId, "join");
      await setMember(database(), onlyAnn, ann, "join");
      return { ann, bob, both, onlyAnn };
    };

    it("may be read where everybody may read each of its sources", async () => {
      const { ann, bob, both, onlyAnn } = await prepare();
      const allowed = (audience: UserId[], sources: RoomId[], owner = newUser()) =>
        historyOf().mayReadAll(audience, sources, owner);
      expect(await allowed([ann], [both, onlyAnn])).toBe(true);
      expect(await allowed([ann, bob], [both])).toBe(true);
      expect(await allowed([ann, bob], [both, onlyAnn])).toBe(false);
      expect(await allowed([bob], [onlyAnn])).toBe(false);
      expect(await allowed([ann], [both, HOME])).toBe(false);
      expect(await allowed([ann], [both, HOME], ann)).toBe(true);
    });

    it("may be read by no empty audience", async () => {
      const { both } = await prepare();
      expect(await historyOf().mayReadAll([], [both], newUser())).toBe(false);
    });
  });

  describe("the ephemeris", () => {
    /** An entry that an agent has made in `roomId` after seeing `sources`; what a conversation elsewhere sees of it. */
    const prepare = async () => {
      const agent = await addAgent(database());
      const [ann, bob, here, there, third] = [newUser(), newUser(), newRoom(), newRoom(), newRoom()];
      await setMember(database(), here, ann, "join");
      for (const userId of [ann, bob]) await setMember(database(), there, userId, "join");
      await setMember(database(), third, bob, "join");
      const turns = new Turns(database(), "test");
      const think = async (roomId: RoomId, sources: RoomId[], entry: string) => {
        await wake(database(), { agent: agent.name, roomId });
        const turn = await turns.claim({ agent: agent.name, roomId }, 10);
        if (typeof turn === "string") throw new Error(turn);
        await turns.commit(turn, { n: 0, name: "model", result: {}, ephemeris: [entry], sources, ends: true });
        return turn.id;
      };
      const seenIn = async (here: RoomId, turnId = 0, owner = agent.owner) => {
        const { ephemeris } = await look({ agent: agent.name, userId: agent.userId, owner, here, turnId });
        return ephemeris.map(({ entry }) => entry);
      };
      return { ann, bob, here, there, third, think, seenIn };
    };

    it("shows what was thought in a room that the audience may read", async () => {
      const { here, there, think, seenIn } = await prepare();
      await think(there, [there], "thought");
      expect(await seenIn(here)).toEqual(["thought"]);
    });

    it("hides what was thought in a room that somebody in the audience may not read", async () => {
      const { here, there, think, seenIn } = await prepare();
      await think(here, [here], "thought");
      expect(await seenIn(there)).toEqual([]);
    });

    it("hides a thought if one of its several sources may not be read", async () => {
      const { here, there, third, think, seenIn } = await prepare();
      await think(there, [there, here], "open");
      await think(there, [there, third], "closed");
      expect(await seenIn(here)).toEqual(["open"]);
    });

    it("hides a thought without sources by the room that it was thought in", async () => {
      const { here, there, think, seenIn } = await prepare();
      await think(here, [], "thought");
      expect(await seenIn(there)).toEqual([]);
    });

    it("shows in a room what was thought there, with nobody there but the agent", async () => {
      const { ann, here, there, think, seenIn } = await prepare();
      await think(here, [here], "thought");
      await think(here, [here, there], "elsewhere");
      await setMember(database(), here, ann, "leave", 1_000_000);
      expect(await seenIn(here)).toEqual(["thought"]);
    });

    it("shows what was thought at home to the owner alone", async () => {
      const { ann, here, think, seenIn } = await prepare();
      await think(HOME, [HOME], "thought");
      expect(await seenIn(here, 0, ann)).toEqual(["thought"]);
      expect(await seenIn(here)).toEqual([]);
    });

    it("leaves out the turn that looks, and is in order", async () => {
      const { here, think, seenIn } = await prepare();
      await think(here, [here], "first");
      await think(here, [here], "second");
      const turnId = await think(here, [here], "third");
      expect(await seenIn(here, turnId)).toEqual(["first", "second"]);
    });
  });

  describe("the rooms of an agent", () => {
    it("tell of a closed room nothing but its name and how much is unread", async () => {
      const agent = await addAgent(database());
      const [here, secret, ann] = [newRoom(), newRoom(), newUser()];
      for (const roomId of [here, secret]) await setMember(database(), roomId, agent.userId, "join");
      await setMember(database(), here, ann, "join");
      await settleEvent(database(), { roomId: secret });
      const { rooms } = await look({ agent: agent.name, userId: agent.userId, owner: agent.owner, here });
      expect(rooms.map(({ roomId, isReadable, unread }) => ({ roomId, isReadable, unread }))).toEqual([
        { roomId: here, isReadable: true, unread: 1 },
        { roomId: secret, isReadable: false, unread: 1 },
      ]);
    });

    it("give of a room with closed history only what came after the last arrival in the audience", async () => {
      const agent = await addAgent(database());
      const [roomId, early, late] = [newRoom(), newUser(), newUser()];
      await setVisibility(roomId, "joined");
      await setMember(database(), roomId, agent.userId, "join", 1_000_005);
      await setMember(database(), roomId, early, "join", 1_000_010);
      const old = await settleEvent(database(), { roomId, position: 1_000_020 });
      const messages = async () => {
        const { events } = await look({ agent: agent.name, userId: agent.userId, owner: agent.owner, here: roomId });
        return events.filter((event) => event.type === "m.room.message").map((event) => event.eventId);
      };
      expect(await messages()).toEqual([old.eventId]);
      await setMember(database(), roomId, late, "join", 1_000_030);
      const fresh = await settleEvent(database(), { roomId, position: 1_000_040 });
      expect(await messages()).toEqual([fresh.eventId]);
    });
  });
});
