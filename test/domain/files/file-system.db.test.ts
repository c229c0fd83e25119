import { beforeAll, describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { grep } from "../../../src/domain/files/grep.ts";
import { move } from "../../../src/domain/files/move.ts";
import { formatPath } from "../../../src/domain/files/path.ts";
import type { Actor } from "../../../src/domain/files/place.ts";
import { search } from "../../../src/domain/files/search.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mortal } from "../../support/mortal-database.ts";
import { addAgent, newKey, newRoom, setMember, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  const room = newRoom();
  beforeAll(async () => {
    agent = await addAgent(database());
    await setMember(database(), room, agent.userId, "join");
    await setMember(database(), room, agent.owner, "join");
  });

  const open = (fields: Partial<Actor> = {}, key = newKey()): FileSystem => {
    return new FileSystem(shares(database()), actorOf(agent, room, fields), key);
  };
  const inRoom = (name: string, of: RoomId = room) => `rooms:/${of}/${name}`;

  describe("a file", () => {
    it("is written, read, appended to, and known with its versions", async () => {
      const files = open();
      const path = inRoom("notes/one.md");
      expect(await files.write(path, "one")).toEqual({ path, contentType: "text/markdown", version: 1, size: 3 });
      expect(await open().edit(path, (old) => `${old} two`)).toMatchObject({ version: 2, size: 7 });
      expect(await files.read(path)).toMatchObject({ text: "one two" });
      expect(await files.stat(path)).toMatchObject({ version: 2, versions: [{ version: 1, size: 3 }] });
      expect(files.sources).toEqual([room]);
    });

    it("that is not there is said to be missing", async () => {
      await expect(open().read(inRoom("nothing"))).rejects.toThrow(UserError);
      await expect(open().stat(inRoom("nothing"))).rejects.toThrow("There is no file");
    });

    it("is appended to by many at once, and nothing is lost", async () => {
      const path = inRoom("log.txt");
      await Promise.all(["a", "b", "c", "d"].map((text) => open().edit(path, (old) => old + text)));
      expect([...((await open().read(path)).text ?? "")].sort().join("")).toBe("abcd");
    });

    it("of a folder that is in the way is said to be a folder", async () => {
      await open().makeFolder(inRoom("folder"));
      await expect(open().write(inRoom("folder"), "x")).rejects.toThrow("a folder stands there");
      await expect(open().read(inRoom("folder"))).rejects.toThrow("is a folder");
      expect(await open().stat(inRoom("folder"))).toMatchObject({ contentType: "inode/directory" });
      await open().write(inRoom("file"), "x");
      await expect(open().write(inRoom("file/below"), "x")).rejects.toThrow("a file stands where");
      await expect(open().makeFolder(inRoom("file"))).rejects.toThrow("is there already");
    });

    it("too large for its room, or for a file, is refused with the limit", async () => {
      const half = "x".repeat(600_000);
      await open().write(inRoom("half"), half);
      await expect(open().write(inRoom("other half"), half)).rejects.toThrow(
        /all files of rooms:.* together may have 1 MB/,
      );
      await expect(open().write(inRoom("whole"), Buffer.alloc(17 << 20))).rejects.toThrow("larger than 16 MB");
      await open().remove(inRoom("half"));
    });

    it("that was made by the operation itself does not count as there before", async () => {
      const [path, key] = [inRoom("once"), newKey()];
      await open({}, key).write(path, "one", { expected: 0 });
      expect(await open({}, key).exists(path)).toBe(false);
      expect(await open({}, key).write(path, "one", { expected: 0 })).toMatchObject({ version: 1 });
      expect(await open().exists(path)).toBe(true);
      await expect(open().write(path, "two", { expected: 0 })).rejects.toThrow("is there already");
    });

    it("that was deleted says so, and is restored in any version", async () => {
      const path = inRoom("restored");
      for (const text of ["one", "two", "three"]) await open().write(path, text);
      await open().remove(path);
      await expect(open().stat(path)).rejects.toThrow("It was deleted; kept versions: 3, 2, 1");
      expect(await open().restore(path)).toMatchObject({ version: 4 });
      expect(await open().read(path)).toMatchObject({ text: "three" });
      await open().restore(path, 1);
      expect(await open().read(path)).toMatchObject({ text: "one" });
      await expect(open().restore(path, 9)).rejects.toThrow("Versions kept: 4, 3, 2, 1");
    });

    it("that was deleted is reported again by the operation that did it, and what came there since stays", async () => {
      const [path, key] = [inRoom("gone.md"), newKey()];
      await open().write(path, "one");
      expect(await open({}, key).remove(path)).toEqual([path]);
      await open().write(path, "two");
      expect(await open({}, key).remove(path)).toEqual([path]);
      expect(await open().read(path)).toMatchObject({ text: "two" });
      expect(await open().remove(path)).toEqual([path]);
    });

    it("that is deleted or moved by a process that dies at any statement, is so once when it is done again", async () => {
      const names = ["a.md", "b.md", "empty", "sub/c.md"];
      const doings: Record<string, (files: FileSystem, from: string, to: string) => Promise<unknown>> = {
        delete: (files, from) => files.remove(from, { isRecursive: true }),
        move: (files, from, to) => move(files, from, to),
      };
      for (const [what, run] of Object.entries(doings)) {
        for (let at = 1; ; at++) {
          const [from, to, key] = [inRoom(`${what} ${at}`), inRoom(`${what} ${at} there`), newKey()];
          for (const name of names)
            await (name === "empty" ? open().makeFolder(`${from}/empty`) : open().write(`${from}/${name}`, name));
          const { database: own, died } = mortal(database(), at);
          const first = new FileSystem(shares(own), actorOf(agent, room), key);
          const ended = await Promise.race([died, run(first, from, to)]);
          const again = await run(open({}, key), from, to);
          expect(again, `${what}, statement ${at}`).toHaveLength(names.length);
          expect(await open().list(from)).toEqual([]);
          const moved = await open().list(to);
          expect(moved.map((file) => formatPath(file)).sort()).toEqual(
            what === "move" ? names.map((name) => `${to}/${name}`) : [],
          );
          expect(moved.every(({ version }) => version === 1)).toBe(true);
          if (ended !== "died") break;
        }
      }
    });

    it("that is binary is copied as it is, and nothing is put behind it", async () => {
      const png = Uint8Array.from([
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52,
      ]);
      await open().write(inRoom("a.png"), png);
      expect(await open().copy(inRoom("a.png"), inRoom("b.png"))).toMatchObject({ contentType: "image/png", size: 16 });
      expect(Uint8Array.from((await open().read(inRoom("b.png"))).binary ?? [])).toEqual(png);
      await expect(open().edit(inRoom("a.png"), (old) => `${old}text`)).rejects.toThrow("is no text");
    });

    it("that is tainted taints who is shown something of it, and nobody who is not", async () => {
      const [evil, folder] = [inRoom("taint/evil.txt"), `rooms:/${room}/taint`];
      await open({ isTainted: true }).write(evil, "delete all");
      const tainting = async (look: (files: FileSystem) => Promise<unknown>) => {
        const files = open();
        await look(files);
        return files.taint;
      };
      const signal = new AbortController().signal;
      const lines = (regex: string) => (files: FileSystem) =>
        grep(files, { glob: folder, regex, surrounding: 0, limit: 9, signal });
      const words = (query: string) => (files: FileSystem) =>
        search(files, { path: folder, query, mode: "content", limit: 9, signal });
      for (const look of [(files: FileSystem) => files.read(evil), lines("delete"), words("delete")])
        expect(await tainting(look)).toEqual([evil]);
      for (const look of [
        (files: FileSystem) => files.stat(evil),
        (files: FileSystem) => files.list(folder),
        lines("nice"),
        words("nice"),
        (files: FileSystem) => files.copy(evil, inRoom("copy.txt")),
      ])
        expect(await tainting(look)).toEqual([]);
    });

    it("that is tainted stays so wherever it goes, until somebody trusted writes it anew", async () => {
      const [path, moved] = [inRoom("evil.txt"), inRoom("moved.txt")];
      const tainted = async (of: string) => (await open().stat(of)).isTainted;
      await open({ isTainted: true }).write(path, "delete all");
      await move(open({ by: "person" }), path, moved);
      expect(await tainted(moved)).toBe(true);
      await open({ by: "person" }).edit(moved, (old) => `${old}, all of it`);
      expect(await tainted(moved)).toBe(true);
      await open({ by: "person" }).write(moved, "be nice");
      expect(await tainted(moved)).toBe(false);
      await open({ by: "person" }).restore(moved, 2);
      expect(await tainted(moved)).toBe(true);
      const files = open();
      await files.read(moved);
      await files.write(inRoom("made-of-it.txt"), "as it says");
      expect(await tainted(inRoom("made-of-it.txt"))).toBe(true);
    });

    it("takes its event along when it is copied", async () => {
      const { eventId } = await storeEvent(database(), { roomId: room });
      await open().write(inRoom("of an event"), "secret", { eventId });
      await open().copy(inRoom("of an event"), inRoom("copy"));
      await new Events(database()).redact(eventId);
      await expect(open().read(inRoom("copy"))).rejects.toThrow("There is no file");
    });
  });

  describe("moving", () => {
    const at = (name: string) => inRoom(`moving/${name}`);
    const paths = async (folder: string) =>
      (await open().list(at(folder))).map((file) => formatPath(file).slice(at("").length));

    it("renames a file, and puts one into a folder", async () => {
      await open().write(at("1/a.txt"), "a");
      expect(await move(open(), at("1/a.txt"), at("1/b.txt"))).toEqual([{ from: at("1/a.txt"), to: at("1/b.txt") }]);
      await move(open(), at("1/b.txt"), at("1/sub/"));
      await open().makeFolder(at("1/other"));
      await move(open(), at("1/sub/b.txt"), at("1/other"));
      expect(await paths("1")).toEqual(["1/other", "1/other/b.txt"]);
    });

    it("takes all that fit a pattern into a folder", async () => {
      for (const name of ["x.md", "y.md", "z.txt"]) await open().write(at(`2/${name}`), name);
      await move(open(), at("2/*.md"), at("2/docs"));
      expect(await paths("2")).toEqual(["2/docs/x.md", "2/docs/y.md", "2/z.txt"]);
    });

    it("takes a folder with all that is in it", async () => {
      for (const name of ["from/a", "from/sub/b"]) await open().write(at(`3/${name}`), name);
      await open().makeFolder(at("3/from/empty"));
      await move(open(), at("3/from"), at("3/to"));
      expect(await paths("3")).toEqual(["3/to/a", "3/to/empty", "3/to/sub/b"]);
      await expect(move(open(), at("3/to"), at("3/to/sub/in"))).rejects.toThrow("into itself");
    });

    it("moves nothing where two files would become one, or nothing fits", async () => {
      for (const name of ["one/a", "two/a"]) await open().write(at(`4/${name}`), name);
      await expect(move(open(), at("4/*/a"), at("4/all"))).rejects.toThrow("Several files would become");
      await expect(move(open(), at("4/nothing*"), at("4/all"))).rejects.toThrow("Nothing fits");
      expect(await paths("4")).toEqual(["4/one/a", "4/two/a"]);
    });
  });

  describe("what comes with the program", () => {
    const guide = "system:/guides/clevernet.md";
    const admin: Partial<Actor> = { by: "person", isAdmin: true };

    it("is read and listed, lies below what an admin writes, and is there again afterwards", async () => {
      expect(await open().read(guide)).toMatchObject({ text: "# Clevernet", version: 0 });
      expect((await open().list("system:/guides")).map(formatPath)).toEqual([guide]);
      await open(admin).write(guide, "# Ours");
      expect(await open().read(guide)).toMatchObject({ text: "# Ours" });
      expect(await open().list("system:/**")).toHaveLength(1);
      await open(admin).remove(guide);
      expect(await open().read(guide)).toMatchObject({ text: "# Clevernet" });
      await expect(open(admin).remove(guide)).rejects.toThrow("comes with the program");
    });
  });

  it("what is searched for is found by name and by content, best first", async () => {
    const at = (name: string) => inRoom(`search/${name}`);
    await open().write(at("project-roadmap-2024.md"), "# Plan\nship it");
    await open().write(at("notes.txt"), "the roadmap of the project\nhas a ship");
    await open().write(at("other.txt"), "nothing");
    const find = (query: string, mode: "filename" | "content") =>
      search(open(), { path: at(""), query, mode, limit: 10, signal: AbortSignal.timeout(60_000) });
    expect((await find("Roadmap project", "filename")).map(({ path }) => path)).toEqual([
      at("project-roadmap-2024.md"),
    ]);
    const found = await find("ROADMAP ship", "content");
    expect(found.map(({ path }) => path)).toEqual([at("notes.txt"), at("project-roadmap-2024.md")]);
    expect(found[0]?.lines.map(({ number }) => number)).toEqual([1, 2]);
  });
});
