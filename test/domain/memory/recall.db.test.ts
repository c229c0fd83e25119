import { describe, expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { HOME } from "../../../src/base/lib/ids.ts";
import { type MemoryQuery, MemoryRecall } from "../../../src/domain/memory/recall.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import type { Memory } from "../../../src/domain/tables/interactions.ts";
import { MemoryUpkeep } from "../../../src/domain/tables/memory-upkeep.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, newUser, setMember, settleEvent } from "../../support/rows.ts";

const remembered = (text: string, fields: Partial<Memory> = {}): Memory => ({
  kind: "observation",
  tool: "message",
  text,
  importance: 0.3,
  ...fields,
});

onEachDatabase((database) => {
  const recallOf = (ranking: "product" | "seed" = "product") =>
    new MemoryRecall(database(), {
      embedder: () => undefined,
      ranking: () => ranking,
      botUserId: "@clevernet:test" as UserId,
      rights: { findBelow: async (_, userIds) => [...userIds] },
    });

  const say = (roomId: RoomId, sender: UserId, text: string, sentAt = new Date()) =>
    settleEvent(
      database(),
      { roomId, sender, sentAt, content: { msgtype: "m.text", body: text } },
      {
        shownChars: text.length,
        memory: remembered(text),
      },
    );

  /** A room with these members. */
  const roomWith = async (...members: UserId[]): Promise<RoomId> => {
    const roomId = newRoom();
    for (const member of members) await setMember(database(), roomId, member, "join");
    return roomId;
  };

  const ask = async (
    agent: AgentRow,
    here: RoomId,
    text: string,
    more: Partial<MemoryQuery> = {},
    ranking?: "seed",
  ) => {
    const { found } = await recallOf(ranking).recall(agent, here, { text, limit: 5, ...more });
    return found.map((one) => one.text);
  };

  /** Keeps something of the agent's own, made from these rooms. */
  const keep = ({ name, userId }: AgentRow, roomId: RoomId, text: string, fields: Record<string, unknown> = {}) => {
    const row = {
      kind: "thought",
      agent: name,
      room_id: roomId,
      sender: userId,
      sources: [roomId],
      speaker: name,
      text: `${name}: ${text}`,
      importance: 0.3,
      ...fields,
    };
    return database().sql`insert into interactions ${database().sql(row as never)}`;
  };

  describe("recall", () => {
    it("finds what has the rarest of the words that are asked for, with the messages around it", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      await say(roomId, ada, "The harpsichord was tuned in May.");
      for (let n = 0; n < 20; n++) await say(roomId, ada, `The weather in May was fine on day ${n}.`);
      const upkeep = new MemoryUpkeep(database());
      while (await upkeep.countWords());
      const found = await ask(agent, roomId, "When was the harpsichord tuned?");
      expect(found[0]).toBe("The harpsichord was tuned in May.");
      expect(found.slice(1).toSorted()).toEqual([0, 1, 2, 3].map((n) => `The weather in May was fine on day ${n}.`));
    });

    it("puts what the named person said first, and takes their name for no word", async () => {
      const [agent, ada, bob] = [await addAgent(database()), newUser(), newUser()];
      const roomId = await roomWith(agent.userId, ada, bob);
      await database()
        .sql`update members set display_name = 'Bob Miller' where user_id = ${bob} and room_id = ${roomId}`;
      await say(roomId, ada, "I like marmalade, and Bob, and Bob's cat.");
      for (let n = 0; n < 9; n++) await say(roomId, ada, `Filler ${n}.`);
      await say(roomId, bob, "I like marmalade.");
      expect(await ask(agent, roomId, "What does Bob like? Marmalade?", { limit: 1 })).toEqual(["I like marmalade."]);
      expect(await ask(agent, roomId, "Do I like marmalade?", { limit: 1, by: bob })).toEqual(["I like marmalade."]);
    });

    it("gives as many rows as were asked for behind every filter", async () => {
      const [agent, ada, bob] = [await addAgent(database()), newUser(), newUser()];
      const [roomId, other] = [await roomWith(agent.userId, ada, bob), await roomWith(agent.userId, ada, bob)];
      const day = (n: number) => new Date(Date.UTC(2026, 0, n));
      for (let n = 1; n <= 28; n++) await say(roomId, ada, `Kettle number ${n}.`, day(n));
      for (let n = 1; n <= 28; n++) await say(other, n % 2 ? ada : bob, `Kettle in the other room, ${n}.`, day(n));
      expect(await ask(agent, roomId, "kettle", { room: other, limit: 20 })).toHaveLength(20);
      expect(await ask(agent, roomId, "kettle", { person: bob, limit: 14 })).toHaveLength(14);
      const some = await ask(agent, roomId, "kettle", { from: day(3), to: day(5), room: roomId, limit: 10 });
      expect(some.toSorted()).toEqual(["Kettle number 3.", "Kettle number 4.", "Kettle number 5."]);
    });

    it("recalls the newest of a fact alone", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      for (const key of ["111", "222", "333"])
        await keep(agent, roomId, `The door code is ${key}.`, { kind: "fact", fact_key: "door code" });
      expect(await ask(agent, roomId, "What is the door code?")).toEqual(["The door code is 333."]);
    });

    it("leaves out what can be read anyway", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      const { eventId } = await say(roomId, ada, "A xebec is a ship.");
      expect(await ask(agent, roomId, "What is a xebec?", { except: [eventId] })).toEqual([]);
    });

    it("leaves out the parts of a room's history that can be read anyway, and no other room's", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const [roomId, other] = [await roomWith(agent.userId, ada), await roomWith(agent.userId, ada)];
      await say(roomId, ada, "One xebec.");
      const second = await say(roomId, ada, "Two xebecs.");
      await say(other, ada, "A xebec elsewhere.");
      const third = await say(roomId, ada, "Three xebecs.");
      await say(roomId, ada, "Four xebecs.");
      const shown = [{ roomId, first: second.position, last: third.position }];
      const found = await ask(agent, roomId, "What is a xebec?", { shown });
      expect(found.toSorted()).toEqual(["A xebec elsewhere.", "Four xebecs.", "One xebec."]);
    });

    it("lets importance count as the seeds have it, where that is configured", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      await keep(agent, roomId, "The zeppelin flew over the lake.", { importance: 0 });
      await keep(agent, roomId, "The zeppelin flew over a lake in the evening with passengers.", { importance: 1 });
      await keep(agent, roomId, "A zeppelin.", { importance: 0.1 });
      expect((await ask(agent, roomId, "zeppelin lake", {}, "seed"))[0]).toMatch("passengers");
    });
  });

  describe("walls around memory", () => {
    it("stand where somebody in the room was not in the other", async () => {
      const [agent, ada, eve] = [await addAgent(database()), newUser(), newUser()];
      const [secret, common] = [await roomWith(agent.userId, ada), await roomWith(agent.userId, ada, eve)];
      const alone = await roomWith(agent.userId, ada);
      await say(secret, ada, "The merger is called Nightingale.");
      await keep(agent, secret, "Nightingale must stay a secret.");
      expect(await ask(agent, common, "What is Nightingale?")).toEqual([]);
      expect(await ask(agent, alone, "What is Nightingale?")).toHaveLength(2);
      await setMember(database(), common, eve, "leave");
      expect(await ask(agent, common, "What is Nightingale?")).toHaveLength(2);
    });

    it("open for what was let over them, and for nobody else's agent", async () => {
      const [agent, other, ada, eve] = [await addAgent(database()), await addAgent(database()), newUser(), newUser()];
      const secret = await roomWith(agent.userId, ada);
      const common = await roomWith(agent.userId, other.userId, ada, eve);
      await keep(agent, secret, "The obelisk stands in Berlin.", { shareable: true });
      expect(await ask(agent, common, "Where is the obelisk?")).toEqual(["The obelisk stands in Berlin."]);
      expect(await ask(other, common, "Where is the obelisk?")).toEqual([]);
    });

    it("close at once around a room that the agent has left, and what it made from there", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const [room, alone] = [await roomWith(agent.userId, ada), await roomWith(agent.userId, ada)];
      await say(room, ada, "The password is pumpernickel.");
      await keep(agent, alone, "Pumpernickel, I was told.", { sources: [room, alone] });
      expect(await ask(agent, alone, "pumpernickel")).toHaveLength(2);
      await setMember(database(), room, agent.userId, "leave");
      expect(await ask(agent, alone, "pumpernickel")).toEqual([]);
    });

    it("hide from newcomers what was said while history was closed", async () => {
      const [agent, ada, eve] = [await addAgent(database()), newUser(), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      const state = { type: "m.room.history_visibility", content: { history_visibility: "joined" }, sender: ada };
      await settleEvent(
        database(),
        { roomId, sender: ada, type: state.type, stateKey: "", content: state.content },
        { state },
      );
      await say(roomId, ada, "The quince is ripe.");
      await setMember(database(), roomId, eve, "join");
      await say(roomId, ada, "Another quince is green.");
      expect(await ask(agent, roomId, "quince")).toEqual(["Another quince is green."]);
      await setMember(database(), roomId, eve, "leave");
      expect(await ask(agent, roomId, "quince")).toHaveLength(2);
    });

    it("hide from an agent what was said while history was closed to it", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(ada);
      const state = { type: "m.room.history_visibility", content: { history_visibility: "joined" }, sender: ada };
      await settleEvent(
        database(),
        { roomId, sender: ada, type: state.type, stateKey: "", content: state.content },
        { state },
      );
      await say(roomId, ada, "The medlar is ripe.");
      await setMember(database(), roomId, agent.userId, "join");
      await say(roomId, ada, "Another medlar is green.");
      expect(await ask(agent, roomId, "medlar")).toEqual(["Another medlar is green."]);
    });

    it("are told to whoever is shown a memory from elsewhere, with those who taint it", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const [elsewhere, here] = [await roomWith(agent.userId, ada), await roomWith(agent.userId, ada)];
      await say(elsewhere, ada, "The theremin hums.");
      await keep(agent, elsewhere, "A theremin, said a file.", { taint: ["rooms:/!a:test/x.md"] });
      const { sources, taint } = await recallOf().recall(agent, here, { text: "theremin", limit: 5 });
      expect(sources).toEqual([elsewhere]);
      expect(taint.toSorted()).toEqual([ada, "rooms:/!a:test/x.md"].toSorted());
    });

    it("let nobody but the owner hear of the agent's home", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const [common, own] = [await roomWith(agent.userId, ada), await roomWith(agent.userId, agent.owner)];
      await keep(agent, HOME, "At home I thought of a zither.");
      expect(await ask(agent, common, "zither")).toEqual([]);
      expect(await ask(agent, own, "zither")).toHaveLength(1);
      expect(await ask(agent, HOME, "zither")).toHaveLength(1);
    });

    it("keep nothing of what was redacted", async () => {
      const [agent, ada] = [await addAgent(database()), newUser()];
      const roomId = await roomWith(agent.userId, ada);
      const { eventId } = await say(roomId, ada, "My kumquat is private.");
      await new Events(database()).redact(eventId);
      expect(await ask(agent, roomId, "kumquat")).toEqual([]);
    });
  });
});
