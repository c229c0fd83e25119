import { describe, expect, it } from "vitest";
import { Events } from "../../../src/domain/tables/events.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { Knowledge } from "../../../src/domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../../src/domain/tables/knowledge-offers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  let count = 0;
  /** A file that no other test knows, with the things of a write that do not matter. */
  const newFile = (text = "one") => ({
    share: "agents",
    path: `/root${++count}/folder/file.txt`,
    contentType: "text/plain",
    text,
    owner: "@ann:test",
  });
  const read = async (file: { share: string; path: string }) => (await new Files(database()).read([file]))[0];

  describe("a file", () => {
    it("is read as it was written, with its size in bytes", async () => {
      const files = new Files(database());
      const file = newFile("größer");
      expect(await files.write(file)).toEqual({ state: "written", version: 1, size: 8 });
      expect(await read(file)).toMatchObject({ text: "größer", binary: null, size: 8, version: 1, owner: "@ann:test" });
    });

    it("may be binary", async () => {
      const binary = Uint8Array.from([0, 255, 1]);
      const file = { ...newFile(), text: null, binary, contentType: "image/png" };
      await new Files(database()).write(file);
      expect(Uint8Array.from((await read(file))?.binary ?? [])).toEqual(binary);
    });

    it("keeps what was overwritten as a version", async () => {
      const files = new Files(database());
      const file = newFile();
      await files.write(file);
      await files.write({ ...file, text: "two", owner: "@ben:test" });
      expect(await read(file)).toMatchObject({ text: "two", version: 2, owner: "@ann:test" });
      expect(await files.versions(file)).toMatchObject([{ version: 1 }]);
      expect(await files.version(file, 1)).toMatchObject({ text: "one" });
    });

    it("that was deleted keeps its version, and a new one counts on", async () => {
      const files = new Files(database());
      const file = newFile();
      await files.write(file);
      expect(await files.remove(file.share, [file.path], newKey())).toEqual([file.path]);
      expect(await read(file)).toBeUndefined();
      expect(await files.write(file)).toMatchObject({ version: 2 });
    });

    it("is not overwritten where another version was expected", async () => {
      const files = new Files(database());
      const file = newFile();
      expect(await files.write({ ...file, expected: 1 })).toEqual({ state: "stale", version: 0 });
      await files.write(file);
      expect(await files.write({ ...file, text: "two", expected: 0 })).toEqual({ state: "stale", version: 1 });
      expect(await read(file)).toMatchObject({ text: "one", version: 1 });
    });

    it("is written once by the same write, however often it is tried", async () => {
      const files = new Files(database());
      const file = { ...newFile(), key: newKey(), expected: 0 };
      await files.write(file);
      expect(await files.write(file)).toMatchObject({ state: "written", version: 1 });
      await files.write({ ...file, text: "two", key: newKey(), expected: 1 });
      expect(await files.write(file)).toMatchObject({ state: "written", version: 1 });
      expect(await read(file)).toMatchObject({ text: "two", version: 2 });
    });
  });

  it("of many writers at once who have seen the same version, one writes", async () => {
    const files = new Files(database());
    const file = newFile("0");
    await files.write(file);
    const writers = Array.from({ length: 8 }, (_, n) => files.write({ ...file, text: `${n}`, expected: 1 }));
    const states = (await Promise.all(writers)).map(({ state }) => state);
    expect(states.filter((state) => state === "written")).toHaveLength(1);
    expect(states.filter((state) => state === "stale")).toHaveLength(7);
  });

  it("of many writers at once, each makes a version, and none is lost", async () => {
    const files = new Files(database());
    const file = newFile();
    const outcomes = await Promise.all(Array.from({ length: 8 }, (_, n) => files.write({ ...file, text: `${n}` })));
    expect(outcomes.map((outcome) => "version" in outcome && outcome.version).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const old = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((version) => files.version(file, version)));
    expect(new Set([...old, await read(file)].map((one) => one?.text)).size).toBe(8);
  });

  it("a file does not stand where a folder is, nor below a file", async () => {
    const files = new Files(database());
    const file = newFile();
    await files.write(file);
    expect(await files.write({ ...file, path: file.path.slice(0, file.path.lastIndexOf("/")) })).toEqual({
      state: "blocked",
    });
    expect(await files.write({ ...file, path: `${file.path}/below` })).toEqual({ state: "blocked" });
  });

  it("limits hold for one file and for all of a root", async () => {
    const files = new Files(database());
    const file = newFile("12345");
    const second = { ...file, path: `${file.path}2` };
    const limits = { file: 6, root: 9 };
    expect(await files.write({ ...file, limits })).toMatchObject({ state: "written" });
    expect(await files.write({ ...file, text: "1234567", limits })).toEqual({ state: "large" });
    expect(await files.write({ ...second, limits })).toEqual({ state: "full" });
    expect(await files.write({ ...second, text: "1234", limits })).toMatchObject({ state: "written" });
    expect(await files.write({ ...file, text: "54321", limits })).toMatchObject({ state: "written" });
  });

  it("a listing has what is at a path and below it, in order, and nothing beside it", async () => {
    const files = new Files(database());
    const file = newFile();
    const folder = file.path.slice(0, file.path.lastIndexOf("/"));
    for (const path of [`${folder}/b`, `${folder}/a/x`, `${folder}-2/c`, `${folder}0`])
      await files.write({ ...file, path });
    const paths = async (...args: Parameters<Files["list"]>) => (await files.list(...args)).map(({ path }) => path);
    expect(await paths("agents", folder, null, 10)).toEqual([`${folder}/a/x`, `${folder}/b`]);
    expect(await paths("agents", folder, null, 1)).toEqual([`${folder}/a/x`]);
    expect(await paths("agents", `${folder}0`, null, 10)).toEqual([`${folder}0`]);
    const root = folder.split("/")[1] ?? "";
    expect(await paths("agents", "/", [root], 10)).toHaveLength(4);
    expect(await paths("agents", "/", ["other"], 10)).toEqual([]);
    expect(await paths("users", folder, null, 10)).toEqual([]);
  });

  describe("of a redacted event", () => {
    it("files, versions and knowledge go", async () => {
      const files = new Files(database());
      const event = await storeEvent(database(), { roomId: newRoom() });
      const { eventId } = event;
      const [file, overwritten] = [
        { ...newFile(), eventId },
        { ...newFile(), eventId },
      ];
      await files.write(file);
      await files.write(overwritten);
      await files.write({ ...overwritten, text: "written anew", eventId: null });
      const { name: agent } = await addAgent(database());
      const knowledge = new Knowledge(database());
      const origin = { agent, title: "", sources: [], taint: [], eventId };
      await knowledge.keep([{ source: "user:a", text: "secret" }], origin);
      const offers = new KnowledgeOffers(database());
      await offers.add({ key: newKey(), roomId: newRoom(), entry: { source: "user:b", text: "secret" }, origin });
      await new Events(database()).redact(eventId);
      expect(await read(file)).toBeUndefined();
      expect(await read(overwritten)).toMatchObject({ text: "written anew" });
      expect([...(await files.versions(file)), ...(await files.versions(overwritten))]).toEqual([]);
      expect(await database().sql`select 1 from knowledge where event_id = ${eventId}`).toHaveLength(0);
      expect(await database().sql`select 1 from knowledge_offers where event_id = ${eventId}`).toHaveLength(0);
      await knowledge.keep([{ source: "user:a", text: "secret" }], origin);
      expect(await database().sql`select 1 from knowledge where event_id = ${eventId}`).toHaveLength(0);
    });

    it("nothing is written any more", async () => {
      const event = await storeEvent(database(), { roomId: newRoom() });
      await new Events(database()).redact(event.eventId);
      const outcome = await new Files(database()).write({ ...newFile(), eventId: event.eventId });
      expect(outcome).toEqual({ state: "redacted" });
    });
  });

  describe("old versions", () => {
    it("are forgotten after 7 days", async () => {
      const files = new Files(database());
      const file = newFile();
      for (const text of ["one", "two", "three"]) await files.write({ ...file, text });
      await database()
        .sql`update file_versions set ended_at = now() - interval '8 days' where path = ${file.path} and version = 1`;
      await files.forgetOld(1_000_000);
      expect(await files.versions(file)).toMatchObject([{ version: 2 }]);
    });

    it("of a root are forgotten sooner, the oldest first, where they take too much", async () => {
      const files = new Files(database());
      const [file, small] = [newFile(), newFile()];
      await files.write(small);
      await files.write({ ...small, text: "two" });
      for (const text of ["12345", "1234", "123", "12"]) await files.write({ ...file, text });
      await files.forgetOld(8);
      expect(await files.versions(file)).toMatchObject([{ version: 3 }, { version: 2 }]);
      expect(await files.versions(small)).toMatchObject([{ version: 1 }]);
    });
  });

  it("knowledge from a source is kept in place of what was known from it", async () => {
    const { name: agent } = await addAgent(database());
    const knowledge = new Knowledge(database());
    const origin = { agent, title: "a", sources: [newRoom()], taint: [], eventId: null };
    const keep = (texts: Record<string, string>, inPlaceOf?: string) =>
      knowledge.keep(
        Object.entries(texts).map(([source, text]) => ({ source, text })),
        origin,
        inPlaceOf,
      );
    await keep({ "fileChunk:a[0]": "one", "fileChunk:a[1]": "two", "fileChunk:b[0]": "three" });
    await keep({ "fileChunk:a[0]": "new" }, "fileChunk:a[");
    const rows = await database().sql`select source, text from knowledge where agent = ${agent} order by source`;
    expect([...rows]).toEqual([
      { source: "fileChunk:a[0]", text: "new" },
      { source: "fileChunk:b[0]", text: "three" },
    ]);
  });
});
