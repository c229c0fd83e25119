import { describe, expect, it } from "vitest";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { MemoryRecall } from "../../../src/domain/memory/recall.ts";
import { MemoryTransfer } from "../../../src/domain/memory/transfer.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newEventId, newKey, newRoom, newUser, setMember, settleEvent } from "../../support/rows.ts";

const now = new Date();
const limits = { file: 1_000_000, root: 10_000_000 };

/** Lines of an export without the header. */
const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line));
const textsOf = (text: string) => linesOf(text).map((line) => line.text);

/** As if it came from another installation. */
const foreign = (text: string): string =>
  text.replaceAll(/"id":"[^"/]+\//g, '"id":"00000000-0000-0000-0000-000000000000/');

onEachDatabase((database) => {
  const transfer = () => new MemoryTransfer(database(), "test");
  const roomWith = async (...members: UserId[]): Promise<RoomId> => {
    const roomId = newRoom();
    for (const member of members) await setMember(database(), roomId, member, "join");
    return roomId;
  };
  const say = (roomId: RoomId, sender: UserId, text: string) =>
    settleEvent(
      database(),
      { roomId, sender, sentAt: now, content: { msgtype: "m.text", body: text } },
      { shownChars: text.length, memory: { kind: "observation", tool: "message", text, importance: 0.3 } },
    );
  const keep = ({ name, userId }: AgentRow, roomId: RoomId, text: string, fields: Record<string, unknown> = {}) => {
    const own = { kind: "thought", agent: name, room_id: roomId, sender: userId, sources: [roomId], speaker: name };
    const row = { ...own, text: `${name}: ${text}`, importance: 0.6, ...fields };
    return database().sql`insert into interactions ${database().sql(row as never)}`;
  };
  const working = (agent: AgentRow, roomId: RoomId, text: string) =>
    new Files(database()).write({
      share: roomId === HOME ? "agents" : "rooms",
      path: roomId === HOME ? `/${agent.name}/memory/LOG.md` : `/${roomId}/agents/${agent.name}/memory/LOG.md`,
      contentType: "text/markdown",
      text,
      owner: agent.userId,
    });
  const take = (agent: AgentRow, text: string, by = agent.owner) =>
    transfer().importInto(agent, { text, by, key: newKey(), now, limits });
  const recall = async (agent: AgentRow, here: RoomId, text: string) =>
    new MemoryRecall(database(), {
      embedder: () => undefined,
      ranking: () => "product",
      botUserId: "@clevernet:test" as UserId,
      rights: { findBelow: async () => [] },
    }).recall(agent, here, { text, limit: 20 });
  /** A room of an agent with its owner alone, in which something was said and thought. */
  const scene = async () => {
    const owner = newUser();
    const agent = await addAgent(database(), owner);
    const roomId = await roomWith(agent.userId, owner);
    const said = await say(roomId, owner, "the vault is in Bern");
    await keep(agent, roomId, "they have a vault");
    return { agent, owner, roomId, said };
  };

  describe("an export of memory", () => {
    it("has what was said and thought, with the people, times and rooms of it, and the working files", async () => {
      const { agent, owner, roomId, said } = await scene();
      await working(agent, roomId, "went to Bern\n");
      const { text, ...counts } = await transfer().exportFrom(agent, roomId, now);
      expect(counts).toMatchObject({ memories: 2, files: 1, keptBack: 0, older: undefined, eventIds: [said.eventId] });
      expect(JSON.parse(text.split("\n")[0] ?? "")).toMatchObject({
        type: "clevernet memory",
        version: 1,
        agent: agent.name,
        server: "test",
        memories: 2,
        files: 1,
      });
      const [first, second, file] = linesOf(text);
      expect(first).toMatchObject({
        type: "memory",
        kind: "observation",
        at: now.toISOString(),
        room: roomId,
        event: said.eventId,
        sender: owner,
        tool: "message",
        text: "the vault is in Bern",
        importance: 0.3,
        shareable: false,
      });
      expect(second).toMatchObject({ kind: "thought", sender: agent.userId, text: "they have a vault", event: null });
      expect(file).toMatchObject({ type: "file", room: roomId, name: "LOG.md", text: "went to Bern\n" });
    });

    it("has nothing that somebody in its room may not read, and counts that", async () => {
      const { agent, owner, roomId } = await scene();
      const bob = newUser();
      const open = await roomWith(agent.userId, owner, bob);
      await say(open, bob, "the weather is fine");
      await keep(agent, open, "bob has to know of the vault", { sources: [open, roomId] });
      await keep(agent, HOME, "a thought at home");
      await working(agent, roomId, "went to Bern\n");
      await working(agent, HOME, "at home\n");
      const there = await transfer().exportFrom(agent, open, now);
      expect(textsOf(there.text)).toEqual(["the weather is fine"]);
      expect(there.keptBack).toBe(6);
      const here = await transfer().exportFrom(agent, roomId, now);
      expect(textsOf(here.text).toSorted()).toEqual(
        [
          "a thought at home",
          "at home\n",
          "bob has to know of the vault",
          "the vault is in Bern",
          "the weather is fine",
          "they have a vault",
          "went to Bern\n",
        ].toSorted(),
      );
      expect(here.keptBack).toBe(0);
      const admins = await roomWith(newUser());
      const elsewhere = await transfer().exportFrom(agent, admins, now);
      expect([elsewhere.memories, elsewhere.files, elsewhere.keptBack]).toEqual([0, 0, 7]);
    });

    it("goes on behind memories of one moment, however many there are", async () => {
      const { agent, roomId } = await scene();
      const at = new Date("2026-01-01T12:00:00.123Z");
      await database().sql`
        insert into interactions (kind, agent, room_id, sources, speaker, text, importance, at)
        select 'thought', ${agent.name}, '', array[''], 'a', 'a: ' || repeat('x', 3000), 0.3, ${at}::timestamptz + n * interval '1 microsecond'
        from generate_series(1, 2500) n`;
      const ids = new Set<string>();
      let before: string | undefined;
      for (let page = 0; page < 5; page++) {
        const { older, text } = await transfer().exportFrom(agent, roomId, now, before);
        for (const line of text.trim().split("\n").slice(1)) ids.add(JSON.parse(line).id);
        before = older;
        if (before === undefined) break;
      }
      expect([before, ids.size]).toEqual([undefined, 2_502]);
    });

    it("has nothing of another agent, of the time before somebody came into a closed room, or of a room whose name is secret", async () => {
      const { agent, owner, roomId } = await scene();
      const other = await addAgent(database(), owner);
      await keep(other, roomId, "the other's thought");
      await database().sql`insert into history_visibility (room_id, position, closed) values (${roomId}, 0, true)`;
      await setMember(database(), roomId, newUser(), "join");
      await say(roomId, owner, "welcome");
      await keep(agent, await roomWith(agent.userId, owner), "the door is green", { shareable: true });
      const { text } = await transfer().exportFrom(agent, roomId, now);
      expect(textsOf(text).toSorted()).toEqual(["the door is green", "welcome"]);
      expect(linesOf(text).find((line) => line.text === "the door is green")?.room).toBeNull();
    });

    it("leaves out facts in whose place others are, and what was redacted", async () => {
      const { agent, roomId, said } = await scene();
      await keep(agent, roomId, "color = red", { kind: "fact", fact_key: "color" });
      await keep(agent, roomId, "color = blue", { kind: "fact", fact_key: "color" });
      await new Events(database()).redact(said.eventId);
      const { text } = await transfer().exportFrom(agent, roomId, now);
      expect(textsOf(text)).toEqual(["they have a vault", "color = blue"]);
    });
  });

  describe("an import of memory", () => {
    it("is recalled for the owner alone, as untrusted, once however often it is imported", async () => {
      const { agent: from, roomId } = await scene();
      await working(from, roomId, "went to Bern\n");
      const { text } = await transfer().exportFrom(from, roomId, now);
      const owner = newUser();
      const agent = await addAgent(database(), owner);
      const [alone, shared] = [await roomWith(agent.userId, owner), await roomWith(agent.userId, owner, newUser())];
      const done = await take(agent, foreign(text).replaceAll('"shareable":false', '"shareable":true'));
      expect(done).toMatchObject({ taken: 2, known: 0, gone: 0, from: `${from.name} on test` });
      expect(await take(agent, foreign(text))).toMatchObject({ taken: 0, known: 2, paths: done.paths });
      const { found, taint, sources } = await recall(agent, alone, "vault");
      expect(found.map((one) => one.text).toSorted()).toEqual(
        [`${from.name}: they have a vault`, `${/user\d+/.exec(from.owner)}: the vault is in Bern`].toSorted(),
      );
      expect(taint).toContain("an imported memory");
      expect(sources).toEqual([HOME]);
      expect((await recall(agent, shared, "vault")).found).toEqual([]);
      const [path = ""] = done.paths;
      expect(path).toMatch(new RegExp(`^agents:/${agent.name}/memory/imported/\\w+/LOG\\.md$`));
      const [file] = await new Files(database()).read([{ share: "agents", path: path.slice("agents:".length) }]);
      expect(file).toMatchObject({ text: "went to Bern\n", isTainted: true, version: 1 });
      const waiting = await database().sql`
        select 1 from interactions_to_embed join interactions on id = interaction_id where agent = ${agent.name}`;
      expect(waiting).toHaveLength(2);
    });

    it("comes back from a second export as it was, and is known where it is from", async () => {
      const { agent: from, roomId, owner } = await scene();
      const { text } = await transfer().exportFrom(from, roomId, now);
      const agent = await addAgent(database(), owner);
      const alone = await roomWith(agent.userId, owner);
      await take(agent, foreign(text));
      const again = await transfer().exportFrom(agent, alone, now);
      expect(linesOf(again.text).map(({ id, room, event, at }) => [id, room, event, at])).toEqual(
        linesOf(foreign(text)).map(({ id, room, event, at }) => [id, room, event, at]),
      );
      expect(await take(from, text)).toMatchObject({ taken: 0, known: 2, gone: 0 });
    });

    it("brings back nothing that was forgotten or redacted here, and a redaction reaches it", async () => {
      const { agent, roomId, said, owner } = await scene();
      const { text } = await transfer().exportFrom(agent, roomId, now);
      const other = await addAgent(database(), owner);
      await take(other, text);
      const texts = () => database().sql`select 1 from interactions where agent = ${other.name}`;
      expect(await texts()).toHaveLength(2);
      await new Events(database()).redact(said.eventId);
      expect(await texts()).toHaveLength(1);
      await database().sql`delete from interactions where agent = ${agent.name}`;
      expect(await take(agent, text)).toMatchObject({ taken: 0, known: 0, gone: 2 });
    });

    it("overrides no fact of the agent's own", async () => {
      const { agent, roomId } = await scene();
      await keep(agent, roomId, "color = red", { kind: "fact", fact_key: "color" });
      const { text } = await transfer().exportFrom(agent, roomId, now);
      const owner = newUser();
      const other = await addAgent(database(), owner);
      await keep(other, HOME, "color = blue", { kind: "fact", fact_key: "color", sources: [HOME] });
      await take(other, foreign(text));
      const { found } = await recall(other, await roomWith(other.userId, owner), "color");
      expect(found.map((one) => one.text)).toContain("color = blue");
    });

    describe("changes nothing, and says what is wrong,", () => {
      const header = { type: "clevernet memory", version: 1, memories: 1, files: 0 };
      const memory = {
        type: "memory",
        id: "a/1",
        kind: "thought",
        at: "2026-01-01T00:00:00Z",
        text: "x",
        importance: 0.3,
      };
      const file = { type: "file", name: "NOW.md", text: "x" };
      const cases: readonly (readonly [string, readonly unknown[], RegExp])[] = [
        ["where it is no export", ["hello"], /no export of an agent's memory/],
        ["of another version", [{ ...header, version: 2 }, memory], /version 2 of the format.*reads version 1/],
        ["where a line is no JSON", [header, "{"], /Line 2 cannot be imported: it is no JSON/],
        ["where a value is wrong", [header, { ...memory, importance: 2 }], /Line 2.*importance: found 2, expected/],
        ["where a key is unknown", [header, { ...memory, owner: "@a:b" }], /Line 2.*owner/],
        ["where a time has not come", [header, { ...memory, at: "2999-01-01T00:00:00Z" }], /Line 2.*not come yet/],
        ["where an id is there twice", [{ ...header, memories: 2 }, memory, memory], /Line 3.*line 2 has it already/],
        [
          "where a file is no working file",
          [{ ...header, files: 1 }, memory, { ...file, name: "../x" }],
          /Line 3.*name/,
        ],
        [
          "where lines are missing",
          [{ ...header, memories: 2 }, memory],
          /not whole: .* 2 memories .* there are 1 memories/,
        ],
        ["where a line is nothing known", [header, { type: "vector" }], /Line 2/],
      ];
      it.each(cases)("%s", async (_, lines, expected) => {
        const agent = await addAgent(database());
        const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
        await expect(take(agent, text)).rejects.toThrow(expected);
        expect(await database().sql`select 1 from interactions where agent = ${agent.name}`).toEqual([]);
      });

      it("and otherwise takes it", async () => {
        const agent = await addAgent(database());
        const text = [header, { ...memory, event: newEventId() }].map((line) => JSON.stringify(line)).join("\n");
        expect(await take(agent, text)).toMatchObject({ taken: 1 });
      });
    });
  });
});
