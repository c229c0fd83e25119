import { beforeAll, describe, expect, it } from "vitest";
import type { AgentRow } from "../../src/database/agents.ts";
import { Todos, todosMax } from "../../src/database/todos.ts";
import { HOME, type RoomId } from "../../src/lib/ids.ts";
import { onEachDatabase } from "../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember } from "../support/rows.ts";

onEachDatabase((database) => {
  let todos: Todos;
  let agent: AgentRow;
  beforeAll(async () => {
    todos = new Todos(database());
    agent = await addAgent(database());
  });
  const newPlace = () => placeOf(newRoom());
  const placeOf = (here: RoomId) => ({ agent: agent.name, owner: agent.owner, here });
  const maker = (sources: readonly RoomId[] = []) => ({ key: newKey(), sources });
  const open = (number: number, name: string) => ({ number, name, done: false });

  describe("todos", () => {
    it("are numbered in their conversation, and no number is given twice", async () => {
      const place = newPlace();
      expect(await todos.add(place, ["one"], maker())).toEqual([open(1, "one")]);
      expect(await todos.add(place, ["two", "three"], maker())).toEqual([open(2, "two"), open(3, "three")]);
      await todos.remove(place, 3);
      expect(await todos.add(place, ["four"], maker())).toEqual([open(4, "four")]);
      expect(await todos.list(place)).toEqual([open(1, "one"), open(2, "two"), open(4, "four")]);
    });

    it("are made once, however often the call is run", async () => {
      const place = newPlace();
      const call = maker();
      const first = await todos.add(place, ["one"], call);
      expect(await todos.add(place, ["one"], call)).toEqual(first);
      expect(await todos.list(place)).toEqual([open(1, "one")]);
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
      const done = { number: 1, name: "one", done: true };
      expect(await todos.finish(place, 1)).toEqual(done);
      expect(await todos.finish(place, 1)).toEqual(done);
      expect(await todos.list(place)).toEqual([done]);
      expect(await todos.open(place, 1)).toBeUndefined();
    });

    it("are not listed once they are removed, and can be neither finished nor opened then", async () => {
      const place = newPlace();
      await todos.add(place, ["one"], maker());
      expect(await todos.remove(place, 1)).toEqual(open(1, "one"));
      expect(await todos.remove(place, 1)).toEqual(open(1, "one"));
      expect(await todos.list(place)).toEqual([]);
      expect(await todos.finish(place, 1)).toBeUndefined();
      expect(await todos.open(place, 1)).toBeUndefined();
    });

    it("are replaced by others, once: what was added since stays when the call is run again", async () => {
      const place = newPlace();
      await todos.add(place, ["one", "two"], maker());
      const call = maker();
      expect(await todos.replace(place, ["three"], call)).toEqual([open(3, "three")]);
      await todos.add(place, ["four"], maker());
      expect(await todos.replace(place, ["three"], call)).toEqual([open(3, "three")]);
      expect(await todos.list(place)).toEqual([open(3, "three"), open(4, "four")]);
    });

    it("are cleared", async () => {
      const place = newPlace();
      await todos.add(place, ["one", "two"], maker());
      expect(await todos.clear(place)).toBe(2);
      expect(await todos.list(place)).toEqual([]);
      expect(await todos.clear(place)).toBe(0);
    });

    it("belong to one conversation", async () => {
      const [place, other] = [newPlace(), newPlace()];
      await todos.add(place, ["one"], maker());
      expect(await todos.list(other)).toEqual([]);
      expect(await todos.finish(other, 1)).toBeUndefined();
      expect(await todos.remove(other, 1)).toBeUndefined();
      expect(await todos.record(other, 1)).toBeUndefined();
      expect(await todos.add(placeOf(HOME), ["at home"], maker())).toEqual([open(1, "at home")]);
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

  describe("a todo that was made with another room in sight", () => {
    it("is there while everybody here may read that room, and as if it were not there for others", async () => {
      const [here, there, ann, ben] = [newRoom(), newRoom(), newUser(), newUser()];
      const place = placeOf(here);
      for (const roomId of [here, there]) await setMember(database(), roomId, ann, "join");
      await todos.add(place, ["of here"], maker([here]));
      await todos.add(place, ["of there"], maker([here, there]));
      expect(await todos.list(place)).toEqual([open(1, "of here"), open(2, "of there")]);
      await setMember(database(), here, ben, "join");
      expect(await todos.list(place)).toEqual([open(1, "of here")]);
      for (const look of [todos.record(place, 2), todos.open(place, 2), todos.finish(place, 2), todos.remove(place, 2)])
        expect(await look).toBeUndefined();
      await setMember(database(), here, ben, "leave");
      expect(await todos.open(place, 2)).toEqual(open(2, "of there"));
    });
  });
});
