import { beforeAll, describe, expect, it } from "vitest";
import { type EventId, HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import type { OperationRecord } from "../../../src/domain/tables/operation-record.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Todos, todosMax } from "../../../src/domain/tables/todos.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, setMember, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  let todos: Todos;
  let turns: Turns;
  let agent: AgentRow;
  beforeAll(async () => {
    todos = new Todos(database());
    turns = new Turns(database(), "a test");
    agent = await addAgent(database());
  });
  const newPlace = () => placeOf(newRoom());
  const placeOf = (here: RoomId) => ({ agent: agent.name, owner: agent.owner, here });
  const maker = (sources: readonly RoomId[] = []) => ({ key: newKey(), sources });
  const open = (number: number, name: string) => ({ number, name, isDone: false });

  describe("todos", () => {
    it("are numbered in their conversation, and no number is given twice", async () => {
      const place = newPlace();
      expect(await todos.add(place, ["one"], maker())).toMatchObject([open(1, "one")]);
      expect(await todos.add(place, ["two", "three"], maker())).toMatchObject([open(2, "two"), open(3, "three")]);
      await todos.remove(place, 3);
      expect(await todos.add(place, ["four"], maker())).toMatchObject([open(4, "four")]);
      expect(await todos.list(place)).toMatchObject([open(1, "one"), open(2, "two"), open(4, "four")]);
    });

    it("are made once, however often the call is run", async () => {
      const place = newPlace();
      const call = maker();
      const first = await todos.add(place, ["one"], call);
      expect(await todos.add(place, ["one"], call)).toMatchObject(first);
      expect(await todos.list(place)).toMatchObject([open(1, "one")]);
    });

    it("are made by several at once without losing any", async () => {
      const place = newPlace();
      await Promise.all(Array.from({ length: 5 }, (_, index) => todos.add(place, [`todo ${index}`], maker())));
      const all = await todos.list(place);
      expect(all.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5]);
      expect(new Set(all.map(({ name }) => name)).size).toBe(5);
    });

    it("are finished, again without effect", async () => {
      const place = newPlace();
      await todos.add(place, ["one"], maker());
      const done = { number: 1, name: "one", isDone: true };
      expect(await todos.finish(place, 1)).toMatchObject(done);
      expect(await todos.finish(place, 1)).toMatchObject(done);
      expect(await todos.list(place)).toMatchObject([done]);
      expect(await todos.open(place, 1)).toBeUndefined();
    });

    it("are not listed once they are removed, and can be neither finished nor opened then", async () => {
      const place = newPlace();
      await todos.add(place, ["one"], maker());
      expect(await todos.remove(place, 1)).toMatchObject(open(1, "one"));
      expect(await todos.remove(place, 1)).toMatchObject(open(1, "one"));
      expect(await todos.list(place)).toEqual([]);
      expect(await todos.finish(place, 1)).toBeUndefined();
      expect(await todos.open(place, 1)).toBeUndefined();
    });

    it("are replaced by others, once: what was added since stays when the call is run again", async () => {
      const place = newPlace();
      await todos.add(place, ["one", "two"], maker());
      const call = maker();
      expect(await todos.replace(place, ["three"], call)).toMatchObject([open(3, "three")]);
      await todos.add(place, ["four"], maker());
      expect(await todos.replace(place, ["three"], call)).toMatchObject([open(3, "three")]);
      expect(await todos.list(place)).toMatchObject([open(3, "three"), open(4, "four")]);
    });

    it("are cleared", async () => {
      const place = newPlace();
      await todos.add(place, ["one", "two"], maker());
      const key = newKey();
      expect(await todos.clear(place, key)).toBe(2);
      expect(await todos.list(place)).toEqual([]);
      await todos.add(place, ["three"], maker());
      expect(await todos.clear(place, key)).toBe(2);
      expect(await todos.list(place)).toMatchObject([{ name: "three" }]);
      expect(await todos.clear(newPlace(), newKey())).toBe(0);
    });

    it("hold what their maker had been shown", async () => {
      const place = newPlace();
      const held = { sources: [newRoom()], taint: ["@stranger:test"] };
      await todos.add(place, ["one"], { key: newKey(), ...held });
      const [todo] = await todos.add(place, ["two"], { key: newKey(), sources: [place.here], taint: held.taint });
      expect(todo).toEqual({ ...open(2, "two"), sources: [place.here], taint: held.taint });
    });

    it("belong to one conversation", async () => {
      const [place, other] = [newPlace(), newPlace()];
      await todos.add(place, ["one"], maker());
      expect(await todos.list(other)).toEqual([]);
      expect(await todos.finish(other, 1)).toBeUndefined();
      expect(await todos.remove(other, 1)).toBeUndefined();
      expect(await todos.record(other, 1)).toBeUndefined();
      expect(await todos.add(placeOf(HOME), ["at home"], maker())).toMatchObject([open(1, "at home")]);
    });

    it(`are ${todosMax} at the most`, async () => {
      const place = newPlace();
      const names = Array.from({ length: todosMax }, (_, index) => `todo ${index}`);
      expect(await todos.add(place, names, maker())).toHaveLength(todosMax);
      expect(await todos.add(place, ["one more"], maker())).toEqual([]);
      expect(await todos.replace(place, names, maker())).toHaveLength(todosMax);
      expect(await todos.list(place)).toHaveLength(todosMax);
    });
  });

  describe("what was done for a todo", () => {
    const did = async (place: ReturnType<typeof placeOf>, record: Partial<OperationRecord>, sources: RoomId[] = []) => {
      const operation: OperationRecord = { ...call({ todo: 1 }), state: "done", result: "a result", ...record };
      const conversation = { agent: place.agent, roomId: place.here };
      await wake(database(), conversation);
      const turn = await turns.claim(conversation, 4);
      if (typeof turn === "string") throw new Error(turn);
      await turns.commit(turn, {
        n: 0,
        name: "call x",
        result: {},
        sources,
        operations: [operation],
        outbox: ["", ".1"].map((part) => ({
          key: `${operation.key}${part}`,
          roomId: place.here,
          sender: "@agent:test" as UserId,
          kind: "message",
          content: {},
        })),
        ends: true,
      });
      return operation;
    };

    it("is listed with the messages that were sent by it", async () => {
      const place = newPlace();
      await todos.add(place, ["one"], maker());
      const first = await did(place, {});
      const second = await did(place, { state: "failed", error: "no such file" });
      await did(place, { todo: 2 });
      const outbox = new Outbox(database());
      const rows = await outbox.take(place.here, 10);
      const sent = rows.map(({ key }, index) => ({ key, eventId: `$sent${index}` as EventId }));
      await outbox.sent(sent.filter(({ key }) => key.startsWith(first.key)));
      const record = await todos.record(place, 1);
      expect(record).toMatchObject({ number: 1, name: "one", isDone: false, isRemoved: false, doneAt: null });
      expect(record?.createdAt).toBeInstanceOf(Date);
      const messages = [
        { roomId: place.here, eventId: "$sent0" },
        { roomId: place.here, eventId: "$sent1" },
      ];
      expect(record?.operations).toMatchObject([
        { tool: first.tool, summary: first.summary, state: "done", result: "a result", error: null, messages },
        { tool: second.tool, state: "failed", error: "no such file", messages: [] },
      ]);
    });

    it("stays when the todo is done and removed", async () => {
      const place = newPlace();
      await todos.add(place, ["one"], maker());
      await did(place, {});
      await todos.finish(place, 1);
      await todos.remove(place, 1);
      const record = await todos.record(place, 1);
      expect(record).toMatchObject({ isDone: true, isRemoved: true });
      expect(record?.doneAt).toBeInstanceOf(Date);
      expect(record?.operations).toHaveLength(1);
    });

    it("is left out where somebody here may not read what its caller had been shown", async () => {
      const [here, there, ann, ben] = [newRoom(), newRoom(), newUser(), newUser()];
      const place = placeOf(here);
      for (const roomId of [here, there]) await setMember(database(), roomId, ann, "join");
      await todos.add(place, ["one"], maker([here]));
      await did(place, {}, [here, there]);
      expect((await todos.record(place, 1))?.operations).toHaveLength(1);
      await setMember(database(), here, ben, "join");
      expect((await todos.record(place, 1))?.operations).toEqual([]);
    });
  });

  describe("a todo that was made with another room in sight", () => {
    it("is there while everybody here may read that room, and as if it were not there for others", async () => {
      const [here, there, ann, ben] = [newRoom(), newRoom(), newUser(), newUser()];
      const place = placeOf(here);
      for (const roomId of [here, there]) await setMember(database(), roomId, ann, "join");
      await todos.add(place, ["of here"], maker([here]));
      await todos.add(place, ["of there"], maker([here, there]));
      expect(await todos.list(place)).toMatchObject([open(1, "of here"), open(2, "of there")]);
      await setMember(database(), here, ben, "join");
      expect(await todos.list(place)).toMatchObject([open(1, "of here")]);
      for (const look of [todos.record(place, 2), todos.open(place, 2), todos.finish(place, 2), todos.remove(place, 2)])
        expect(await look).toBeUndefined();
      await setMember(database(), here, ben, "leave");
      expect(await todos.open(place, 2)).toMatchObject(open(2, "of there"));
    });
  });
});
