import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/base/lib/ids.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { parsePath } from "../../../src/domain/files/path.ts";
import type { Actor } from "../../../src/domain/files/place.ts";
import { Compactions } from "../../../src/domain/tables/compaction.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, setMember, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  const scene = async () => {
    const [agent, roomId, ann, ben] = [await addAgent(database()), newRoom(), newUser(), newUser()];
    await database().sql`insert into history_visibility (room_id, position, closed) values (${roomId}, 0, true)`;
    for (const userId of [agent.userId, ann]) await setMember(database(), roomId, userId, "join");
    const folder = `rooms:/${roomId}/agents/${agent.name}/memory`;
    const as = (requester: UserId, by: Actor["by"] = "model") =>
      new FileSystem(shares(database()), actorOf(agent, roomId, { by, requesters: [requester] }), newKey());
    const textFor = async (userId: UserId, name: string) => {
      const read = (by: Actor["by"]) =>
        as(userId, by)
          .read(`${folder}/${name}`)
          .then(
            ({ text }) => text,
            () => "closed",
          );
      const [model, person] = [await read("model"), await read("person")];
      return model === person ? model : [model, person];
    };
    const comes = () => setMember(database(), roomId, ben, "join");
    return { agent, roomId, ann, ben, folder, as, textFor, comes };
  };

  describe("working files of a room whose history is closed to newcomers", () => {
    it("begin anew for all who are there with somebody who came after their first entry; what was there is put aside", async () => {
      const { ann, ben, as, folder, textFor, comes, roomId } = await scene();
      await as(ann).append(`${folder}/LOG.md`, "before\n");
      await as(ann).edit(`${folder}/facts.json`, () => '{ "code": "4711" }');
      await comes();
      await as(ben).append(`${folder}/LOG.md`, "after\n");
      await as(ben).edit(`${folder}/facts.json`, () => '{ "room": "12" }');
      for (const userId of [ben, ann]) {
        expect(await textFor(userId, "LOG.md")).toBe("after\n");
        expect(await textFor(userId, "facts.json")).toBe('{ "room": "12" }');
        for (const name of ["LOG.1.md", "facts.1.json"]) expect(await textFor(userId, name)).toBe("closed");
      }
      expect((await as(ben).list(`${folder}/*`)).map(({ path }) => path.replace(/^.*\//, "")).toSorted()).toEqual([
        "LOG.md",
        "facts.json",
      ]);
      await setMember(database(), roomId, ben, "leave");
      expect(await textFor(ann, "LOG.1.md")).toBe("before\n");
      expect(await textFor(ann, "facts.1.json")).toBe('{ "code": "4711" }');
    });

    it("are closed to whoever came after what was made shorter of them", async () => {
      const { agent, ann, ben, as, folder, textFor, comes, roomId } = await scene();
      await as(ann).append(`${folder}/LOG.md`, "before\n");
      await comes();
      const log = parsePath(`${folder}/LOG.md`);
      const memory = { kind: "summary", text: "before, in short", importance: 0.3 } as const;
      const compaction = { ...log, prefix: "before\n", lines: "in short\n", memory };
      expect(await new Compactions(database()).compact({ agent: agent.name, roomId }, compaction)).toBe(true);
      expect([await textFor(ben, "LOG.md"), await textFor(ann, "LOG.md")]).toEqual(["closed", "closed"]);
      await setMember(database(), roomId, ben, "leave");
      expect(await textFor(ann, "LOG.md")).toBe("in short\n");
    });

    it("are open again once they are written anew", async () => {
      const { ann, ben, as, folder, textFor, comes } = await scene();
      await as(ann).append(`${folder}/LOG.md`, "before\n");
      await comes();
      await as(ben).write(`${folder}/LOG.md`, "anew\n");
      await as(ben).append(`${folder}/LOG.md`, "after\n");
      expect(await textFor(ben, "LOG.md")).toBe("anew\nafter\n");
      await expect(as(ben).read(`${folder}/facts.json`)).resolves.toMatchObject({ text: "{}\n" });
    });

    it("are closed also if only the turn had begun before, of which they tell", async () => {
      const { agent, roomId, ben, folder, textFor, comes } = await scene();
      const turns = new Turns(database(), newKey());
      await wake(database(), { agent: agent.name, roomId });
      const turn = await turns.claim({ agent: agent.name, roomId }, 10);
      if (typeof turn === "string") throw new Error(turn);
      await comes();
      const done = { ...call(), n: 0, callId: "fc1", state: "done" as const };
      const logTo = parsePath(`${folder}/LOG.md`);
      const step = { n: 0, name: "model", result: {}, sources: [roomId], ends: true };
      await turns.commit(turn, { ...step, operations: [done], logTo });
      const [row] = await database().sql`select text_content as text from files where path = ${logTo.path}`;
      expect(row?.text).toMatch(/TOOL_USE Tool #1 a summary: done/);
      expect(await textFor(ben, "LOG.md")).toBe("closed");
    });
  });
});
