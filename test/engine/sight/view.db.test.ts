import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { layout } from "../../../src/base/prompt/layout.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { Desks } from "../../../src/domain/desk/desk.ts";
import { Events, type StoredEvent } from "../../../src/domain/tables/events.ts";
import { Knowledge } from "../../../src/domain/tables/knowledge.ts";
import type { Turn } from "../../../src/domain/tables/turns.ts";
import { Guides } from "../../../src/engine/sight/guides.ts";
import { nothingRecalled } from "../../../src/engine/sight/recollection.ts";
import { View } from "../../../src/engine/sight/view.ts";
import { onEachDatabase } from "../../support/database.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, settleEvent } from "../../support/rows.ts";

const long = "word ".repeat(800);

type Change =
  | { readonly what: "say"; readonly body: string }
  | { readonly what: "edit" | "redact" | "file" | "late"; readonly which: number }
  | { readonly what: "think" | "come" | "go" | "rename" | "elsewhere" };

/** Changes that may happen in a room between two looks; a number chooses one of the messages so far. */
const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ what: fc.constant("say" as const), body: fc.constantFrom("hello", "a\nb <c>", long) }),
  fc.record({
    what: fc.constantFrom("edit" as const, "redact" as const, "file" as const, "late" as const),
    which: fc.nat(5),
  }),
  fc.record({
    what: fc.constantFrom("think" as const, "come" as const, "go" as const, "rename" as const, "elsewhere" as const),
  }),
);

onEachDatabase((database) => {
  let agent: Agent;
  let owner: UserId;
  /** Makes the view of a process that has just begun. */
  let newView: () => View;
  beforeEach(async () => {
    const name = newKey().replace(" ", "") as AgentName;
    owner = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: "I help.", settings: parseAgentSettings({}, "test") }, "test");
    agent = (await directory.find(name)) as Agent;
    const rights = await rightsOf(database(), { test: "operate" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const desks = new Desks(database(), mind.files);
    const guides = new Guides(new Map(), "test", mind.subAgents);
    const clock = fixedClock({ start: new Date(0) });
    const { botUserId } = mind;
    const options = { clock, serverName: "test", rights, botUserId, modelOf: () => "m", desks, guides, prefix: "!" };
    newView = () => new View(database(), options);
  });

  const enter = async (visibility = "shared") => {
    const roomId = newRoom();
    const content = { history_visibility: visibility };
    const state = { type: "m.room.history_visibility", content, sender: owner };
    await settleEvent(database(), { roomId }, { state });
    for (const userId of [owner, agent.userId]) await setMember(database(), roomId, userId, "join");
    return roomId;
  };
  const say = (roomId: RoomId, body: string, sender: UserId = owner, position?: number) =>
    settleEvent(database(), { roomId, sender, content: { msgtype: "m.text", body }, position });
  const look = (view: View, roomId: RoomId, recollect?: Parameters<View["see"]>[2]["recollect"]) => {
    const startedAt = new Date(0);
    const turn = {
      id: 2 ** 40,
      number: 1,
      agent: agent.name,
      roomId,
      reason: "new event",
      salt: "",
      epoch: 1,
      chain: null,
      startedAt,
    };
    return view.see(agent, { ...turn, sources: [], requesters: [], taint: [], audience: null } as Turn, {
      wakes: [],
      entries: [],
      reminders: [],
      base: undefined,
      known: new Set(),
      ...(recollect && { recollect }),
    });
  };
  const textOf = async (view: View, roomId: RoomId) => {
    const { world } = await look(view, roomId);
    return (["cacheable", "seed"] as const).map((name) => layout(world, name).user).join("\n");
  };

  it("tells the recollection if the agent has any knowledge", async () => {
    const roomId = await enter();
    const hasKnown: boolean[] = [];
    const see = () =>
      look(newView(), roomId, async ({ seen }) => {
        hasKnown.push(seen.hasKnowledge);
        return nothingRecalled;
      });
    await see();
    const origin = { agent: agent.name, title: "", sources: [roomId], taint: [], eventId: null };
    await new Knowledge(database()).keep([{ source: "user:a", text: "a" }], origin);
    await see();
    expect(hasKnown).toEqual([false, true]);
  });

  it("lets what has just left the log come to mind, and recalls once where nothing has", async () => {
    agent = { ...agent, settings: { ...agent.settings, approxContextCharsMax: 16_000 } };
    const roomId = await enter();
    const { eventId } = await say(roomId, "the ledger number is 8812");
    const isShown: boolean[] = [];
    const see = () =>
      look(newView(), roomId, async ({ seen }) => {
        isShown.push(seen.events.some((event) => event.eventId === eventId));
        return nothingRecalled;
      });
    await see();
    expect(isShown).toEqual([true]);
    for (let n = 0; n < 30; n++) await say(roomId, `${n}: ${"words ".repeat(100)}`);
    const { world } = await see();
    expect(isShown).toEqual([true, true, false]);
    expect(layout(world, "cacheable").user).not.toContain("8812");
  });

  it("tells how many entries the ephemeris has in all, where it shows the last of them", async () => {
    const roomId = await enter();
    for (let n = 1; n <= 60; n++)
      await database().sql`
        insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
        values (${agent.userId}, ${roomId}, ${2 ** 41}, 1, ${n}, '<thought timestamp="2026-01-01T00:00:00Z">hm</thought>', ${[roomId]})`;
    agent = { ...agent, settings: { ...agent.settings, layout: "seed" } };
    const { world } = await look(newView(), roomId);
    expect(world).toMatchObject({ ephemerisLines: 60, ephemeris: { length: 50 } });
    const [window] = /<window windowId="ephemeris"[^>]*>/.exec(layout(world, "seed").user) ?? [];
    expect(window).toContain('lines="60"');
    expect(window).toMatch(/ truncated>$/);
  });

  interface Scene {
    readonly roomId: RoomId;
    readonly other: RoomId;
    readonly guest: UserId;
    /** Messages so far, in both rooms. */
    readonly said: StoredEvent[];
    readonly round: number;
    readonly view: View;
  }
  let count = 0;

  const happen = async (change: Change, { roomId, other, guest, said, round, view }: Scene): Promise<unknown> => {
    count += 1;
    const sql = database().sql;
    const events = new Events(database());
    const meant = said[("which" in change ? change.which : 0) % said.length] as StoredEvent;
    switch (change.what) {
      case "say":
        return said.push(await say(roomId, change.body));
      case "late":
        return said.push(await say(roomId, "late", owner, meant.position + count * 1e-6));
      case "edit":
        return events.applyEdit(meant.eventId, { msgtype: "m.text", body: `edited ${round}` });
      case "redact":
        return events.redact(meant.eventId);
      case "file":
        return sql`
          update events set media = jsonb_build_object('state', 'missing', 'reason', ${`try ${count}`}::text)
          where event_id = ${meant.eventId} and redacted_at is null`;
      case "think":
        return sql`
          insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
          values (${agent.userId}, ${roomId}, ${-count}, 1, 1,
            '<thought timestamp="2026-01-01T00:00:00Z">hm</thought>', ${[roomId, other]})`;
      case "rename": {
        const state = { type: "m.room.name", content: { name: `Room ${round}` }, sender: owner };
        return settleEvent(database(), { roomId }, { state });
      }
      case "elsewhere":
        return look(view, other);
      case "come":
      case "go":
        return setMember(database(), roomId, guest, change.what === "come" ? "join" : "leave");
    }
  };

  it("tells in which turn here the agent worked last, and in none before its first", async () => {
    const [roomId, other] = [await enter(), await enter()];
    const before = async () => (await look(newView(), roomId)).world.turn.before;
    expect(await before()).toBeUndefined();
    const began = new Date("2026-01-01T12:00:00Z");
    const turn = { agent: agent.name, number: -1, reason: "timer", runner: "none", state: "done" };
    await database().sql`insert into turns ${database().sql([
      { ...turn, room_id: roomId, started_at: began },
      { ...turn, number: -2, room_id: other, started_at: new Date("2026-01-01T13:00:00Z") },
    ])}`;
    expect(await before()).toEqual(began);
  });

  it("whoever has looked before sees the same as whoever has not, whatever happens in between", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("shared", "joined"),
        fc.array(fc.array(anyChange, { maxLength: 4 }), { minLength: 2, maxLength: 4 }),
        async (visibility, looks) => {
          const [roomId, other] = [await enter(visibility), await enter()];
          const said = [await say(roomId, "first"), await say(other, "there")];
          const view = newView();
          const guest = newUser();
          for (const [round, changes] of looks.entries()) {
            for (const change of changes) await happen(change, { roomId, other, guest, said, round, view });
            expect(await textOf(view, roomId)).toBe(await textOf(newView(), roomId));
          }
        },
      ),
      { numRuns: 12 },
    );
  });

  it("what senders say of the time decides neither what is left of a long log nor which rooms are shown", async () => {
    const rooms = await Promise.all(Array.from({ length: 12 }, () => enter()));
    const [roomId, newest] = [rooms[0] as RoomId, rooms[1] as RoomId];
    for (const other of rooms.slice(2)) {
      const fields = { roomId: other, sender: owner, sentAt: new Date("2999-01-01T00:00:00Z") };
      await settleEvent(database(), { ...fields, content: { msgtype: "m.text", body: `from the future ${long}` } });
    }
    for (const [index, place] of [newest, roomId].entries()) {
      const fields = { roomId: place, sender: owner, sentAt: new Date("1971-01-01T00:00:00Z") };
      await settleEvent(database(), { ...fields, content: { msgtype: "m.text", body: `newest ${index}` } });
    }
    const { world } = await look(newView(), roomId);
    const { user } = layout(world, "cacheable");
    expect(world.rooms.map((room) => room.roomId)).toContain(newest);
    for (const text of ["newest 0", "newest 1", "from the future"]) expect(user).toContain(text);
    expect(user).toContain('timestamp="1971-01-01 00:00"');
  });

  describe("what was read before", () => {
    it("is not sent again where nothing of it has changed", async () => {
      const roomId = await enter();
      const old = await say(roomId, "an old word ".repeat(1_000));
      const view = newView();
      const [first] = (await look(view, roomId)).world.rooms;
      await say(roomId, "a new word");
      const [second] = (await look(view, roomId)).world.rooms;
      const entryOf = (room: typeof first) =>
        [...(room?.history ?? []), ...(room?.newEvents ?? [])].find(({ eventId }) => eventId === old.eventId);
      expect(entryOf(first)).toBeDefined();
      expect(entryOf(second)).toBe(entryOf(first));
    });

    it("is not seen where a wall has closed since, and is where it has opened again", async () => {
      const [roomId, other, stranger] = [await enter(), await enter(), newUser()];
      await say(other, "a secret");
      const view = newView();
      expect(await textOf(view, roomId)).toContain("a secret");
      await setMember(database(), roomId, stranger, "join");
      expect(await textOf(view, roomId)).not.toContain("a secret");
      await setMember(database(), roomId, stranger, "leave");
      expect(await textOf(view, roomId)).toContain("a secret");
    });

    it("is not seen once it is redacted, by whichever process", async () => {
      const roomId = await enter();
      const { eventId } = await say(roomId, "a slip");
      const view = newView();
      expect(await textOf(view, roomId)).toContain("a slip");
      await new Events(database()).redact(eventId);
      expect(await textOf(view, roomId)).not.toContain("a slip");
    });
  });
});
