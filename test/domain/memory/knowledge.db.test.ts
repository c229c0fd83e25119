import { describe, expect, it } from "vitest";
import { backlogOf } from "../../../src/adapters/database/backlog.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { originOfFile, sectionsAsKnowledge } from "../../../src/domain/files/as-knowledge.ts";
import { EmbeddingKeeper } from "../../../src/domain/memory/embedding-keeper.ts";
import { KnowledgeBase, type KnowledgeQuestion } from "../../../src/domain/memory/knowledge-base.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { type FileRow, Files } from "../../../src/domain/tables/files.ts";
import { InteractionVectors } from "../../../src/domain/tables/interaction-vectors.ts";
import { Knowledge } from "../../../src/domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../../src/domain/tables/knowledge-offers.ts";
import type { KnowledgeReader } from "../../../src/domain/tables/knowledge-query.ts";
import { KnowledgeVectors } from "../../../src/domain/tables/knowledge-vectors.ts";
import { MemoryUpkeep } from "../../../src/domain/tables/memory-upkeep.ts";
import { MemoryKeeper } from "../../../src/edges/routing/memory-keeper.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember, storeEvent } from "../../support/rows.ts";

const handbook =
  "# Boiler\n\nThe boiler is serviced by Tanner in May.\n\n# Garden\n\nThe hedge belongs to the neighbours.\n";

onEachDatabase((database) => {
  const base = (embed?: (text: string) => number[]) =>
    new KnowledgeBase(database(), () =>
      embed
        ? { model: "angle", embed: async (texts) => texts.map((text) => Float32Array.from(embed(text))) }
        : undefined,
    );

  const write = async (file: { share: string; path: string }, text: string, isTainted = false): Promise<FileRow> => {
    const files = new Files(database());
    await files.write({ ...file, contentType: "text/markdown", text, owner: "@ann:test", isTainted });
    const [row] = await files.read([file]);
    if (!row) throw new Error("the file is there");
    return row;
  };
  const keepFile = async (agent: AgentRow, file: FileRow, source: RoomId | undefined): Promise<void> => {
    const { entries, prefix } = sectionsAsKnowledge(file, file.text ?? "");
    await new Knowledge(database()).keep(
      entries,
      originOfFile({ agent: agent.name }, file, source === undefined ? [] : [source]),
      prefix,
    );
  };
  const readerOf = ({ name, owner, userId }: AgentRow, here: RoomId, more: Partial<KnowledgeReader> = {}) => ({
    ...{ agent: name, userId, owner, here, requesters: [owner], uses: true },
    ...more,
  });
  const find = async (who: KnowledgeReader, text: string, more: Partial<KnowledgeQuestion> = {}) =>
    (await base().find(who, { text, limit: 10, ...more })).map(({ text: found }) => found);

  /** An agent with its owner in a room that has a handbook, and in another. */
  const scene = async () => {
    const agent = await addAgent(database());
    const [room, other] = [newRoom(), newRoom()];
    for (const place of [room, other])
      for (const member of [agent.userId, agent.owner]) await setMember(database(), place, member, "join");
    const place = { share: "rooms", path: `/${room}/handbook.md` };
    const file = await write(place, handbook);
    await keepFile(agent, file, room);
    return { agent, room, other, place, file };
  };
  const boiler = "# Boiler\n\nThe boiler is serviced by Tanner in May.";

  describe("knowledge of a file", () => {
    it("is found by its words, the best first, with source, lines and score", async () => {
      const { agent, room, place } = await scene();
      const found = await base().find(readerOf(agent, room), { text: "Who services the boiler?", limit: 10 });
      expect(found).toEqual([
        expect.objectContaining({
          source: `fileChunk:rooms:${place.path}[0]`,
          ...{ firstLine: 1, lastLine: 3, text: boiler, isOutdated: false, sources: [room], taint: [] },
        }),
      ]);
      expect(found[0]?.score).toBeTypeOf("number");
      expect(found[0]?.score).toBeCloseTo(1);
      const [hedge] = await base().find(readerOf(agent, room), { text: "hedge", limit: 10 });
      expect(hedge).toMatchObject({ firstLine: 5, lastLine: 7 });
    });

    it("is found by its meaning once it has vectors, which storing does not wait for", async () => {
      const { agent, room } = await scene();
      const embed = (text: string) => (/boiler|heating/i.test(text) ? [1, 0] : [0, 1]);
      const asked = { text: "heating", limit: 1 };
      expect(await base(embed).find(readerOf(agent, room), asked)).toEqual([]);
      const knowledge = new KnowledgeVectors(database());
      const present = {
        ...{ model: "angle", dimensions: 2 },
        embed: async (texts: readonly string[]) => texts.map((text) => Float32Array.from(embed(text))),
      };
      const keeper = new EmbeddingKeeper({
        embeddings: { present },
        vectors: new InteractionVectors(database()),
        knowledge,
        leases: { holds: () => true },
        clock: systemClock,
        log: silentLog,
      });
      keeper.start();
      await expect.poll(() => knowledge.waiting(), { timeout: 10_000 }).toBe(0);
      await keeper.stop();
      expect(await base(embed).find(readerOf(agent, room), asked)).toMatchObject([{ text: boiler }]);
      const files = { share: "rooms", paths: [] };
      expect(await base(embed).find(readerOf(agent, room), { ...asked, files })).toEqual([]);
    });

    it("is counted among what waits to be embedded", async () => {
      const { memories } = await backlogOf(database());
      await scene();
      expect(await backlogOf(database())).toMatchObject({ memories: memories + 2 });
      expect((await backlogOf(database())).memoriesAge).toBeGreaterThan(0);
    });

    it("is found only below the path and the source that are asked for", async () => {
      const { agent, room, place } = await scene();
      const who = readerOf(agent, room);
      await write({ share: "rooms", path: `/${room}/other.md` }, "x");
      expect(await find(who, "boiler", { files: { share: "rooms", paths: [place.path] } })).toEqual([boiler]);
      expect(await find(who, "boiler", { files: { share: "rooms", paths: [`/${room}/other.md`] } })).toEqual([]);
      expect(await find(who, "boiler", { sourcePrefix: "fileChunk:" })).toEqual([boiler]);
      expect(await find(who, "boiler", { sourcePrefix: "fileSummary:" })).toEqual([]);
    });

    it("is marked when the file has changed, and follows it in the background", async () => {
      const { agent, room, place } = await scene();
      const who = readerOf(agent, room);
      await write(place, "# Boiler\n\nThe boiler was replaced.\n", true);
      expect(await base().find(who, { text: "boiler", limit: 1 })).toMatchObject([
        { text: boiler, isOutdated: true, taint: [`rooms:${place.path}`] },
      ]);
      expect(await base().sources(who)).toMatchObject([{ state: "outdated", entries: 2 }]);
      const keeper = new MemoryKeeper({
        upkeep: new MemoryUpkeep(database()),
        knowledge: new Knowledge(database()),
        offers: new KnowledgeOffers(database()),
        kindOf: () => "human",
        isCommand: () => false,
        clock: systemClock,
        log: silentLog,
      });
      keeper.start();
      await expect
        .poll(() => find(who, "boiler"), { timeout: 10_000 })
        .toEqual(["# Boiler\n\nThe boiler was replaced."]);
      await keeper.stop();
      expect(await base().sources(who)).toMatchObject([{ state: "current", entries: 1 }]);
    });

    it("is not found once the file is deleted, is found again when it is restored, and goes with its old versions", async () => {
      const { agent, room, place } = await scene();
      const who = readerOf(agent, room);
      await new Files(database()).remove("rooms", [place.path], newKey());
      expect(await find(who, "boiler")).toEqual([]);
      expect(await base().sources(who)).toMatchObject([{ state: "gone" }]);
      const knowledge = new Knowledge(database());
      await knowledge.forgetGone();
      await write(place, handbook);
      expect(await find(who, "boiler")).toEqual([boiler]);
      await new Files(database()).remove("rooms", [place.path], newKey());
      await database().sql`delete from file_versions where path = ${place.path}`;
      await knowledge.forgetGone();
      expect(await base().sources(who)).toEqual([]);
    });

    it("is deleted at once with its vectors, and nothing else is", async () => {
      const { agent, room, place } = await scene();
      const who = readerOf(agent, room);
      await keepFile(agent, await write({ share: "rooms", path: `/${room}/handbook.md.old` }, "old boiler"), room);
      const ids = await database().sql<
        { id: number }[]
      >`select id from knowledge where agent = ${agent.name} order by id`;
      for (const { id } of ids)
        await database()
          .sql`insert into knowledge_vectors (knowledge_id, model, chunk, vector) values (${id}, 'angle', 0, '[1,0]')`;
      expect(await base().remove(who, { prefixes: [`fileChunk:rooms:${place.path}[`] })).toHaveLength(2);
      expect(await find(who, "boiler")).toEqual(["old boiler"]);
      const left = await database()
        .sql`select 1 from knowledge_vectors where knowledge_id in ${database().sql(ids.map(({ id }) => id))}`;
      expect(left).toHaveLength(1);
    });

    it("keeps the vectors of what stays as it is when it is kept anew", async () => {
      const { agent, room, place } = await scene();
      await database().sql`delete from knowledge_to_embed`;
      const [kept] = await database().sql<{ id: number }[]>`
        select id from knowledge where agent = ${agent.name} and source like '%[0]'`;
      await database().sql`
        insert into knowledge_vectors (knowledge_id, model, chunk, vector) values (${kept?.id ?? 0}, 'angle', 0, '[1,0]')`;
      await keepFile(agent, await write(place, handbook.replace("neighbours", "owners")), room);
      const waiting = await database().sql<{ text: string }[]>`
        select text from knowledge_to_embed join knowledge on id = knowledge_id`;
      expect(waiting.map(({ text }) => text)).toEqual(["# Garden\n\nThe hedge belongs to the owners."]);
      const vectors = await database().sql`select 1 from knowledge_vectors where knowledge_id = ${kept?.id ?? 0}`;
      expect(vectors).toHaveLength(1);
    });

    it("is another agent's affair for no other agent", async () => {
      const { agent, room } = await scene();
      const other = await addAgent(database(), agent.owner);
      await setMember(database(), room, other.userId, "join");
      expect(await find(readerOf(other, room), "boiler")).toEqual([]);
      expect(await base().remove(readerOf(other, room), { prefixes: ["file"] })).toEqual([]);
    });
  });

  describe("walls around knowledge", () => {
    const closed = async (who: KnowledgeReader) => {
      expect(await find(who, "boiler")).toEqual([]);
      expect(await base().sources(who)).toEqual([]);
      expect(await base().remove(who, { prefixes: ["file"] })).toEqual([]);
    };

    it("open a room's file where everybody is in that room", async () => {
      const { agent, other } = await scene();
      expect(await find(readerOf(agent, other), "boiler")).toEqual([boiler]);
    });

    it("close it where somebody is not in that room, or is invited", async () => {
      for (const membership of ["join", "invite"] as const) {
        const { agent, other } = await scene();
        await setMember(database(), other, newUser(), membership);
        await closed(readerOf(agent, other));
      }
    });

    it("close it for a requester who is not in that room", async () => {
      const { agent, room } = await scene();
      await closed(readerOf(agent, room, { requesters: [agent.owner, newUser()] }));
    });

    it("close it where the agent has left", async () => {
      const { agent, room, other } = await scene();
      await setMember(database(), room, agent.userId, "leave");
      await closed(readerOf(agent, other));
    });

    it("close a file from before somebody came to a room that shows newcomers nothing of before", async () => {
      const { agent, room, place } = await scene();
      await database().sql`insert into history_visibility (room_id, position, closed) values (${room}, 0, true)`;
      const late = newUser();
      await storeEvent(database(), { roomId: room });
      await setMember(database(), room, late, "join");
      const early = await database().sql`select too_early(array[${late}], 'rooms', array[${place.path}])`;
      expect(early).toHaveLength(1);
      await keepFile(agent, await write({ share: "agents", path: `/${agent.name}/copy.md` }, handbook), "" as RoomId);
      await closed(readerOf(agent, room));
      await new Files(database()).remove("rooms", [place.path], newKey());
      await closed(readerOf(agent, room));
    });

    it("close a copy of a file that came with a message from before somebody came", async () => {
      const { agent, room, other } = await scene();
      const message = await storeEvent(database(), { roomId: room });
      await database().sql`insert into history_visibility (room_id, position, closed) values (${room}, 0, true)`;
      const late = newUser();
      const place = { share: "rooms", path: `/${other}/copy.md` };
      await new Files(database()).write({
        ...{ ...place, contentType: "text/plain", text: "a copied kettle", owner: "@ann:test" },
        eventId: message.eventId,
      });
      const [file] = await new Files(database()).read([place]);
      if (file) await keepFile(agent, file, other);
      expect(await find(readerOf(agent, other), "kettle")).toEqual(["a copied kettle"]);
      await storeEvent(database(), { roomId: room });
      for (const joined of [room, other]) await setMember(database(), joined, late, "join");
      expect(await find(readerOf(agent, other), "kettle")).toEqual([]);
    });

    it("open a person's file for this person alone, and the home for the owner alone", async () => {
      const { agent, room, other } = await scene();
      const { owner } = agent;
      const personal = await write({ share: "users", path: `/${owner}/a.md` }, "a personal kettle");
      await keepFile(agent, personal, owner as string as RoomId);
      const own = await write({ share: "agents", path: `/${agent.name}/b.md` }, "a kettle at home");
      await keepFile(agent, own, "" as RoomId);
      expect((await find(readerOf(agent, room), "kettle")).toSorted()).toEqual([
        "a kettle at home",
        "a personal kettle",
      ]);
      await setMember(database(), other, newUser(), "join");
      expect(await find(readerOf(agent, other), "kettle")).toEqual([]);
    });

    it("open what defines an agent for people with the right to use, and what is shipped for everybody", async () => {
      const { agent, room } = await scene();
      await keepFile(agent, await write({ share: "agents", path: "/shared/c.md" }, "a defining kettle"), undefined);
      await keepFile(agent, await write({ share: "system", path: "/guides/d.md" }, "a shipped kettle"), undefined);
      expect((await find(readerOf(agent, room), "kettle")).toSorted()).toEqual([
        "a defining kettle",
        "a shipped kettle",
      ]);
      expect(await find(readerOf(agent, room, { uses: false }), "kettle")).toEqual(["a shipped kettle"]);
    });

    it("close what was said in a room by where it was said and by all that had been shown", async () => {
      const { agent, room, other } = await scene();
      const origin = { agent: agent.name, title: "", sources: [room, other], taint: ["@eve:test"], eventId: null };
      await new Knowledge(database()).keep([{ source: "user:1", text: "the teapot leaks" }], origin);
      const [found] = await base().find(readerOf(agent, room), { text: "teapot", limit: 1 });
      expect(found).toMatchObject({ taint: ["@eve:test"], firstLine: null });
      expect(await base().sources(readerOf(agent, room))).toContainEqual(expect.objectContaining({ prefix: "user" }));
      await setMember(database(), room, newUser(), "join");
      expect(await find(readerOf(agent, room), "teapot")).toEqual([]);
    });
  });

  it("a text from before somebody came to a room that shows newcomers nothing of before stays closed", async () => {
    const { agent, room } = await scene();
    await database().sql`insert into history_visibility (room_id, position, closed) values (${room}, 0, true)`;
    const origin = { agent: agent.name, title: "", sources: [room], taint: [], eventId: null };
    const keep = (source: string, text: string) => new Knowledge(database()).keep([{ source, text }], origin);
    await storeEvent(database(), { roomId: room });
    await keep("user:1", "the teapot leaks");
    await storeEvent(database(), { roomId: room });
    await setMember(database(), room, newUser(), "join");
    await storeEvent(database(), { roomId: room });
    await keep("user:2", "the teapot was mended");
    expect(await find(readerOf(agent, room), "teapot")).toEqual(["the teapot was mended"]);
  });

  describe("a summary that is offered", () => {
    const offered = async () => {
      const { agent, room, file } = await scene();
      const [offers, key] = [new KnowledgeOffers(database()), newKey()];
      const entry = { source: `fileSummary:rooms:${file.path}`, text: "About a boiler and a hedge." };
      const draft = { key, roomId: room, entry, origin: originOfFile({ agent: agent.name }, file, [room]) };
      await offers.add(draft);
      const eventId = `$asked ${key}` as EventId;
      await database().sql`
        insert into outbox (key, room_id, sender, kind, content, event_id, state)
        values (${key}, ${room}, ${agent.userId}, 'message', '{}', ${eventId}, 'sent')`;
      return { agent, draft, eventId, offers, room };
    };

    it("is knowledge once somebody has said yes, and only once", async () => {
      const { agent, draft, eventId, offers, room } = await offered();
      const who = readerOf(agent, room);
      expect(await find(who, "hedge", { sourcePrefix: "fileSummary:" })).toEqual([]);
      expect(await offers.asked(eventId)).toMatchObject({ agent: agent.name, roomId: room, key: draft.key });
      expect(await offers.keep(draft.key, "@ann:test" as UserId, [])).toBe(true);
      expect(await find(who, "hedge", { sourcePrefix: "fileSummary:" })).toEqual([draft.entry.text]);
      expect(await offers.asked(eventId)).toBeUndefined();
      expect(await offers.keep(draft.key, "@ann:test" as UserId, [])).toBe(false);
    });

    it("stays as it was when it is offered again by the same operation, and is forgotten after a day", async () => {
      const { draft, eventId, offers } = await offered();
      expect(await offers.add({ ...draft, entry: { ...draft.entry, text: "other" } })).toBe(draft.entry.text);
      await database()
        .sql`update knowledge_offers set created_at = now() - interval '25 hours' where key = ${draft.key}`;
      expect(await offers.asked(eventId)).toBeUndefined();
      await offers.forgetOld();
      expect(await database().sql`select 1 from knowledge_offers where key = ${draft.key}`).toHaveLength(0);
    });
  });
});
