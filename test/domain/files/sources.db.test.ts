import { beforeEach, describe, expect, it } from "vitest";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { grep } from "../../../src/domain/files/grep.ts";
import { move } from "../../../src/domain/files/move.ts";
import { formatPath, parsePath } from "../../../src/domain/files/path.ts";
import type { Actor } from "../../../src/domain/files/place.ts";
import { search } from "../../../src/domain/files/search.ts";
import { workingFile } from "../../../src/domain/files/working-files.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import type { WorkingName } from "../../../src/domain/tables/state-names.ts";
import { Windows } from "../../../src/domain/tables/windows.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember } from "../../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  let [owner, ann, bob]: UserId[] = [];
  /** Ann's rooms with the agent: one that stays hers, and one into which Bob comes. */
  let [hers, shared]: RoomId[] = [];

  beforeEach(async () => {
    [owner, ann, bob, hers, shared] = [newUser(), newUser(), newUser(), newRoom(), newRoom()];
    agent = await addAgent(database(), owner);
    for (const room of [hers, shared])
      for (const person of [agent.userId, ann]) await setMember(database(), room, person, "join");
  });

  const bobComes = (room = shared as RoomId) => setMember(database(), room, bob as UserId, "join");
  const open = (fields: Partial<Actor> = {}, room = shared as RoomId) =>
    new FileSystem(shares(database()), actorOf(agent, room, { requesters: [ann as UserId], ...fields }), newKey());
  const person = (who = bob as UserId, room = shared as RoomId) => open({ by: "person", requesters: [who] }, room);
  /** The agent in a turn that has been shown the other room. */
  const shown = () => open({ sources: [shared as RoomId, hers as RoomId] });
  const inRoom = (name: string, room = shared as RoomId) => `rooms:/${room}/${name}`;
  const signal = new AbortController().signal;
  const sourcesOf = async (path: string) => (await new Files(database()).read([parsePath(path)]))[0]?.sources;

  describe("a computer on which a command was given in a turn that was shown another room", () => {
    it("is closed to all once somebody comes who may not read that room, until it is reset", async () => {
      const at = { agent: agent.name, roomId: shared as RoomId };
      const sandboxes = new SandboxTable(database());
      await sandboxes.claim(at, newKey(), "default");
      await sandboxes.hold(at, [shared as RoomId, hers as RoomId]);
      const use = (files = open()) => files.requireOpenComputer();
      await use();
      expect([...(await open().sourcesOf("sandbox:/"))].sort()).toEqual([hers, shared].sort());
      await bobComes();
      const wayOut = "`!sandbox reset` removes it with all its files, and the next command gets a new one.";
      const closed = `sandbox:/ is closed here: not everybody here may read all that the computer may hold. ${wayOut}`;
      await expect(use()).rejects.toThrow(closed);
      await expect(use(person())).rejects.toThrow(closed);
      await expect(open().sourcesOf("sandbox:/")).rejects.toThrow(closed);
      const his = `sandbox:/a is closed here: ${bob} may not read all that the computer may hold. ${wayOut}`;
      await expect(person().sourcesOf("sandbox:/a")).rejects.toThrow(his);
      await sandboxes.markEmpty(at);
      await use(person());
      // The room itself closes nothing to its people.
      await sandboxes.hold(at, [shared as RoomId]);
      await use(person());
      expect(await person().sourcesOf("sandbox:/")).toEqual([shared]);
    });
  });

  describe("a file that an agent writes in a turn that was shown another room", () => {
    it("knows that room, and is closed to whoever may not read it as if it had come too early", async () => {
      const path = inRoom("notes.md");
      await shown().write(path, "the secret");
      expect(await sourcesOf(path)).toEqual([hers]);
      const reader = open();
      expect((await reader.read(path)).text).toBe("the secret");
      expect(reader.sources).toEqual([shared, hers]);
      await bobComes();
      const closed = `${inRoom("notes.md")} is closed here: not everybody here may read it.`;
      await expect(open().read(path)).rejects.toThrow(closed);
      await expect(open().stat(path)).rejects.toThrow("closed here");
      await expect(open().info(path)).rejects.toThrow("closed here");
      await expect(person().read(path)).rejects.toThrow("may not read it");
      for (const files of [person(), person(ann), open()]) {
        expect(await files.list(inRoom("**"))).toEqual([]);
        expect(
          await grep(files, { glob: inRoom("**"), regex: "secret", surrounding: 0, limit: 9, signal }),
        ).toMatchObject({ found: [], filesSearched: 0 });
        for (const mode of ["content", "filename"] as const)
          expect(await search(files, { path: inRoom(""), query: "secret notes", mode, limit: 9, signal })).toEqual([]);
        await expect(files.copy(path, inRoom("copy.md"))).rejects.toThrow("closed here");
        await expect(move(files, path, inRoom("moved.md"))).rejects.toThrow("closed here");
      }
      await expect(person().write(path, "mine")).rejects.toThrow("may not write there");
      await expect(person().edit(path, (old) => old)).rejects.toThrow("may not write there");
    });

    it("is open to them where they may read that room, and closed to its people who leave it", async () => {
      await shown().write(inRoom("notes.md"), "the secret");
      await bobComes(hers);
      await bobComes();
      expect((await person().read(inRoom("notes.md"))).text).toBe("the secret");
      await setMember(database(), hers as RoomId, bob as UserId, "leave");
      await expect(person().read(inRoom("notes.md"))).rejects.toThrow("may not read it");
    });

    it("stays closed where lines are added, and is open once it is written anew; what it was stays closed", async () => {
      const path = inRoom("notes.md");
      await shown().write(path, "the secret");
      await open().edit(path, (old) => `${old}, and more`);
      expect(await sourcesOf(path)).toEqual([hers]);
      await bobComes();
      await open().write(path, "for all");
      expect((await person().read(path)).text).toBe("for all");
      await person().restore(path, 1);
      await expect(person().read(path)).rejects.toThrow("may not read it");
    });

    it("takes its sources along, by whomever it is copied or moved", async () => {
      await shown().write(inRoom("a.md"), "the secret");
      await person(ann).write(inRoom("plain.md"), "nothing");
      await person(ann).copy(inRoom("a.md"), inRoom("b.md"));
      await move(person(ann), inRoom("?.md"), inRoom("kept/"));
      await move(person(ann), inRoom("plain.md"), inRoom("kept/"));
      expect(await sourcesOf(inRoom("kept/a.md"))).toEqual([hers]);
      expect(await sourcesOf(inRoom("kept/b.md"))).toEqual([hers]);
      expect(await sourcesOf(inRoom("kept/plain.md"))).toEqual([]);
      await bobComes();
      expect((await person().list(inRoom("**"))).map(({ path }) => path.split("/").at(-1))).toEqual(["plain.md"]);
    });

    it("is in no window of those who may not read it, and adds its sources to the desk of the others", async () => {
      const path = inRoom("notes.md");
      await shown().write(path, "the secret");
      const seat = { agent: agent.name, userId: agent.userId, owner: owner as UserId, here: shared as RoomId };
      await new Windows(database()).open(seat, {
        srcType: "file",
        src: path,
        arguments: "",
        contentType: "text/markdown",
        content: null,
        sources: [shared as RoomId],
        taint: [],
        height: 20,
        turnsLeft: 2,
        key: newKey(),
      });
      const desk = () => new Windows(database()).desk(seat);
      expect(await desk()).toMatchObject({ windows: [{ isOpen: true }], files: [{ sources: [hers] }] });
      await bobComes();
      expect(await desk()).toMatchObject({ windows: [{ isOpen: false }], files: [] });
    });
  });

  it("a person's own words are behind no wall but that of their place", async () => {
    await person(ann).write(inRoom("notes.md"), "for all");
    expect(await sourcesOf(inRoom("notes.md"))).toEqual([]);
    await bobComes();
    expect((await person().read(inRoom("notes.md"))).text).toBe("for all");
  });

  it("a copy of a person's file, or one of another room, stays behind the wall of that one", async () => {
    await person(ann).write(`users:/${ann}/diary.md`, "dear diary");
    await person(ann).copy(`users:/${ann}/diary.md`, inRoom("diary.md"));
    await person(ann, hers).write(inRoom("b.md", hers), "hers");
    await person(ann).copy(inRoom("b.md", hers), inRoom("b.md"));
    expect(await sourcesOf(inRoom("diary.md"))).toEqual([ann]);
    await bobComes();
    await expect(person().read(inRoom("diary.md"))).rejects.toThrow("closed here");
    await expect(person().read(inRoom("b.md"))).rejects.toThrow("closed here");
  });

  it("a home stands among the sources by its owner", async () => {
    const room = newRoom();
    for (const one of [agent.userId, owner]) await setMember(database(), room, one as UserId, "join");
    const files = (fields: Partial<Actor>) => open({ requesters: [owner as UserId], ...fields }, room);
    await files({ sources: [room, HOME] }).write(inRoom("a.md", room), "from home");
    expect(await sourcesOf(inRoom("a.md", room))).toEqual([owner]);
    expect((await files({}).read(inRoom("a.md", room))).text).toBe("from home");
    await files({ sources: [HOME, room] }).write(`agents:/${agent.name}/memory/a.md`, "at home");
    expect(await sourcesOf(`agents:/${agent.name}/memory/a.md`)).toEqual([room]);
    await bobComes(room);
    await expect(person(bob, room).read(inRoom("a.md", room))).rejects.toThrow("closed here");
  });

  it("files that define agents have no sources", async () => {
    const path = `agents:/${agent.name}/persona.md`;
    await open({ by: "person", requesters: [owner as UserId], isAdmin: true }, HOME).write(path, "You are kind");
    expect(await sourcesOf(path)).toEqual([]);
  });

  describe("a working file that not everybody here may read", () => {
    const working = (name: WorkingName) =>
      formatPath(workingFile({ agent: agent.name, roomId: shared as RoomId }, name));
    const besides = async () =>
      (
        await database().sql<{ path: string; text: string; sources: string[] }[]>`
        select path, text_content as text, sources from files where path ~ ${`^/${shared}/agents/.*/memory/.*[.][0-9]`} order by path`
      ).map(({ path, text, sources }) => ({ name: path.split("/").at(-1), text, sources }));

    it("is put aside when lines are added, for those who may read it, and a new one begins", async () => {
      await shown().append(working("LOG.md"), "the secret\n");
      await open().append(working("LOG.md"), "more\n");
      expect(await sourcesOf(working("LOG.md"))).toEqual([hers]);
      await bobComes();
      await open().append(working("LOG.md"), "for all\n");
      expect(await person().read(working("LOG.md"))).toMatchObject({ text: "for all\n", sources: [], version: 3 });
      expect(await besides()).toEqual([{ name: "LOG.2.md", text: "the secret\nmore\n", sources: [hers] }]);
      const aside = working("LOG.md").replace("LOG", "LOG.2");
      await expect(person().read(aside)).rejects.toThrow("closed here");
      await person().append(working("LOG.md"), "and Bob's\n");
      expect((await open().read(working("LOG.md"))).text).toBe("for all\nand Bob's\n");
      await setMember(database(), shared as RoomId, bob as UserId, "leave");
      expect((await open().read(aside)).text).toBe("the secret\nmore\n");
    });

    it("loses nothing where something stands at the path already, or many write at once", async () => {
      await shown().append(working("LOG.md"), "the secret\n");
      await open().write(working("LOG.md").replace("LOG", "LOG.1"), "in the way");
      await bobComes();
      await Promise.all(["a", "b", "c"].map((line) => open().append(working("LOG.md"), `${line}\n`)));
      expect((await person().read(working("LOG.md"))).text?.split("\n").sort().join("")).toBe("abc");
      expect(await besides()).toEqual([
        { name: "LOG.1-1.md", text: "the secret\n", sources: [hers] },
        { name: "LOG.1.md", text: "in the way", sources: [] },
      ]);
    });

    it("of facts begins anew, too, and the new status has its own sources alone", async () => {
      await shown().edit(working("facts.json"), () => '{"code": "secret"}');
      await shown().write(working("NOW.md"), "the secret");
      await bobComes();
      for (const files of [person(), open()]) await files.write(working("NOW.md"), "for all");
      expect((await person().read(working("NOW.md"))).text).toBe("for all");
      await person().edit(working("facts.json"), (old) => `{"before": "${old}"}`);
      expect((await person().read(working("facts.json"))).text).toBe('{"before": ""}');
      expect(await besides()).toEqual([{ name: "facts.1.json", text: '{"code": "secret"}', sources: [hers] }]);
    });

    it("is not overwritten by a person who may not read it, nor by anybody who is not here", async () => {
      await shown().append(working("LOG.md"), "the secret\n");
      await bobComes();
      await expect(person().write(working("LOG.md"), "mine")).rejects.toThrow("may not write there");
      await expect(person(newUser()).append(working("LOG.md"), "mine\n")).rejects.toThrow("may not write there");
    });
  });
});
