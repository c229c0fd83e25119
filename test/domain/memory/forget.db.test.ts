import { describe, expect, it } from "vitest";
import type { AgentName, EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { blank, Repeats } from "../../../src/base/lib/repeats.ts";
import { originOfFile, sectionsAsKnowledge } from "../../../src/domain/files/as-knowledge.ts";
import { Forgetting, type Forgotten } from "../../../src/domain/memory/forget.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Files, type FileWrite } from "../../../src/domain/tables/files.ts";
import type { ToForget } from "../../../src/domain/tables/forgetting.ts";
import { Knowledge, type KnowledgeOrigin } from "../../../src/domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../../src/domain/tables/knowledge-offers.ts";
import { RedactionMarks } from "../../../src/domain/tables/redaction-marks.ts";
import { WrittenFiles } from "../../../src/domain/tables/written-files.ts";
import { blankRepetitions } from "../../../src/edges/routing/blanking.ts";
import { noApprovals } from "../../support/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember, settleEvent, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  const say = (roomId: RoomId, sender: UserId, text: string) =>
    settleEvent(
      database(),
      { roomId, sender, content: { msgtype: "m.text", body: text } },
      { shownChars: 5, memory: { kind: "observation", text, importance: 0.3 } },
    );
  const forgetting = () => new Forgetting(database(), new Events(database()));
  /** Forgets; counts the messages and memories. */
  const forget = async (what: ToForget): Promise<number> => {
    const { memories, messages } = await forgetting().all(what);
    return memories + messages;
  };
  const texts = async (roomId: RoomId) =>
    (await database().sql<{ text: string }[]>`select text from interactions where room_id = ${roomId} order by id`).map(
      ({ text }) => text.replace(/^[^:]*: /, ""),
    );
  const keep = (agent: AgentName, roomId: RoomId, text: string, requester: UserId) => database().sql`
    insert into interactions (kind, agent, room_id, sources, speaker, text, importance, requester)
    values ('thought', ${agent}, ${roomId}, array[${roomId}], 'a', ${`a: ${text}`}, 0.3, ${requester})`;

  /** Does what the background does: blanks all that repeats what was forgotten. */
  const blankAll = async () => {
    const marks = new RedactionMarks(database());
    const parts = {
      events: new Events(database()),
      marks,
      files: new WrittenFiles(database()),
      approvals: noApprovals,
    };
    for (let mark = await marks.take(); mark; mark = await marks.take()) await blankRepetitions(mark, parts);
  };

  describe("forgetting", () => {
    it("takes a message from agents as a redaction does", async () => {
      const [roomId, ada] = [newRoom(), newUser()];
      const { eventId } = await say(roomId, ada, "the vault opens with seventeen turns");
      await forgetting().message(eventId);
      expect(await texts(roomId)).toEqual([]);
      expect((await new Events(database()).find(eventId))?.content).toEqual({});
      expect(await database().sql`select 1 from redactions where event_id = ${eventId}`).toHaveLength(1);
    });

    it("takes what has all of the words, in this room alone", async () => {
      const [roomId, other, ada] = [newRoom(), newRoom(), newUser()];
      await say(roomId, ada, "the vault is open");
      await say(roomId, ada, "the vault code is 17");
      await say(other, ada, "the vault code is 17");
      expect(await forget({ roomId, agents: [], words: "CODE vault" })).toBe(1);
      expect(await texts(roomId)).toEqual(["the vault is open"]);
      expect(await texts(other)).toHaveLength(1);
    });

    it.each([
      ["https://example.org/a/hotel77?b=1", "hotel77"],
      ["Write to tango77@mail.example.org.", "tango77"],
      ["Write to tango77@mail.example.org.", "tango77@mail.example.org"],
      ["/etc/whiskey77/conf", "whiskey77"],
      ["snake_case77_name", "case77"],
      ["Die Straße heißt Österweg.", "ÖSTERWEG"],
      ["Die Straße heißt O\u0308sterweg.", "österweg"],
      ["金庫の番号は四七一一です", "番号"],
    ])("finds in %s the word %s", async (text, words) => {
      const [roomId, ada] = [newRoom(), newUser()];
      await say(roomId, ada, text);
      expect(await forget({ roomId, agents: [], words })).toBe(1);
      expect(await texts(roomId)).toEqual([]);
    });

    it.each([
      ["Mia studies at both universities", "universal"],
      ["The codes are long.", "code"],
      ["Write to tango@mail.example.org.", "tango@example.org"],
      ["Die Straße heißt Osterweg.", "österweg"],
    ])("leaves %s, which does not have the word %s", async (text, words) => {
      const [roomId, ada] = [newRoom(), newUser()];
      await say(roomId, ada, text);
      expect(await forget({ roomId, agents: [], words })).toBe(0);
      expect(await texts(roomId)).toEqual([text]);
    });

    it("does not take the name of whoever speaks for a word of theirs", async () => {
      const [{ name }, roomId] = [await addAgent(database()), newRoom()];
      await keep(name, roomId, "about one", newUser());
      expect(await forget({ roomId, agents: [name], words: "a" })).toBe(0);
    });

    it("takes messages that nobody remembers, such as commands, and those that said it before they were edited", async () => {
      const [roomId, ada, bob] = [newRoom(), newUser(), newUser()];
      const unremembered = (sender: UserId, body: string) =>
        settleEvent(database(), { roomId, sender, content: { msgtype: "m.text", body } });
      const command = await unremembered(ada, "!recall the quagga");
      const edited = await unremembered(ada, "the quagga is here");
      await new Events(database()).applyEdit(edited.eventId, { msgtype: "m.text", body: "nothing" });
      const theirs = await unremembered(bob, "a quagga?");
      expect(await forget({ roomId, agents: [], words: "quagga", by: ada })).toBe(2);
      const contents = async ({ eventId }: { eventId: EventId }) =>
        (await new Events(database()).find(eventId))?.content;
      expect(await contents(command)).toEqual({});
      expect(await contents(edited)).toEqual({});
      expect(await contents(theirs)).toMatchObject({ body: "a quagga?" });
    });

    it("takes thousands at once, and looks for what repeats them", async () => {
      const [{ name }, roomId, ada] = [await addAgent(database()), newRoom(), newUser()];
      await database().sql`
        insert into interactions (kind, agent, room_id, sources, speaker, text, importance, requester)
        select 'thought', ${name}, ${roomId}, array[${roomId}], 'a', 'a: the hippo in pond ' || n, 0.3, ${ada}
        from generate_series(1, 1200) n`;
      for (let n = 0; n < 30; n++) await say(roomId, ada, `the hippo of pond ${n} is called Number ${n}`);
      await say(roomId, ada, "the rhino");
      expect(await forget({ roomId, agents: [name], words: "hippo" })).toBe(1230);
      expect(await texts(roomId)).toEqual(["the rhino"]);
      const marks = await database().sql<{ eventId: EventId; prints: string[] }[]>`
        select event_id as "eventId", prints from redactions where places[1] = ${roomId} and event_id like '$%'`;
      expect(marks).toHaveLength(1);
      const repeats = new Repeats(marks.map(({ eventId, prints }) => ({ salt: eventId, prints })));
      expect([0, 17, 29].map((n) => repeats.in(`hippo of pond ${n} is called`))).toEqual([true, true, true]);
      expect(repeats.in("hippo of pond 30 is called")).toBe(false);
    });

    it("takes the words out of the command, also from what agents were shown", async () => {
      const [roomId, ada] = [newRoom(), newUser()];
      const { eventId } = await say(roomId, ada, "!forget quagga");
      await forgetting().command(eventId, "!forget █████");
      expect((await new Events(database()).find(eventId))?.content).toEqual({
        msgtype: "m.text",
        body: "!forget █████",
      });
    });

    it("takes everything of a person, also what agents thought for them, and nothing of others", async () => {
      const [{ name }, roomId, ada, bob] = [await addAgent(database()), newRoom(), newUser(), newUser()];
      await say(roomId, ada, "one");
      await say(roomId, bob, "two");
      await keep(name, roomId, "about one", ada);
      await keep(name, roomId, "about two", bob);
      expect(await forget({ roomId, agents: [name], by: ada })).toBe(2);
      expect(await texts(roomId)).toEqual(["two", "about two"]);
    });

    it("looks for the words of agents' own memories wherever else they are, and leaves other words alone", async () => {
      const [{ name, userId }, roomId, ada] = [await addAgent(database()), newRoom(), newUser()];
      await setMember(database(), roomId, userId, "join");
      await keep(name, roomId, "the heir of the vault is cousin Leopold", ada);
      await keep(name, roomId, "in short: the heir of the vault is cousin Leopold, it seems", newUser());
      await keep(name, roomId, "the vault is green", newUser());
      const said = await settleEvent(
        database(),
        { roomId, sender: userId, content: { msgtype: "m.text", body: "So the heir of the vault is cousin Leopold." } },
        { shownChars: 5 },
      );
      const file = { share: "rooms", path: `/${roomId}/agents/${name}/memory/LOG.md`, contentType: "text/markdown" };
      const text = "the weather is fine\nthe heir of the vault is cousin Leopold\n";
      await new Files(database()).write({ ...file, text, owner: userId });
      expect(await forget({ roomId, agents: [name], words: "heir", by: ada })).toBe(1);
      await blankAll();
      expect(await texts(roomId)).toEqual(["the vault is green"]);
      expect((await new Events(database()).find(said.eventId))?.content.body).toBe(blank);
      expect((await new Files(database()).read([file]))[0]?.text).toBe(`the weather is fine\n${blank}\n`);
    });
  });

  describe("forgetting knowledge", () => {
    const nothing: Forgotten = { messages: 0, memories: 0, knowledge: 0, files: 0, left: [] };
    const keepText = (agent: AgentName, roomId: RoomId, text: string, more: Partial<KnowledgeOrigin> = {}) =>
      new Knowledge(database()).keep([{ source: `user:${text}`, text }], {
        ...{ agent, title: "", sources: [roomId], taint: [], eventId: null, roomId, requester: null },
        ...more,
      });
    const known = async (agent: AgentName) =>
      (await database().sql<{ text: string }[]>`select text from knowledge where agent = ${agent} order by id`).map(
        ({ text }) => text,
      );
    const vectorsOf = async (agent: AgentName) =>
      (
        await database()
          .sql`select 1 from knowledge_vectors v join knowledge k on k.id = v.knowledge_id where agent = ${agent}`
      ).length;
    const embedAll = (agent: AgentName) => database().sql`
      insert into knowledge_vectors (knowledge_id, model, chunk, vector) select id, 'angle', 0, '[1,0]' from knowledge where agent = ${agent}`;

    it("takes entries with the words that were kept in the room or come from it, with their vectors", async () => {
      const [{ name }, other, roomId, elsewhere] = [
        await addAgent(database()),
        await addAgent(database()),
        newRoom(),
        newRoom(),
      ];
      await keepText(name, roomId, "the door code is 4711");
      await keepText(name, roomId, "the gate is green");
      await keepText(name, elsewhere, "the door code of the barn", { roomId });
      await keepText(name, roomId, "the door code of the shed", { roomId: elsewhere });
      await keepText(name, elsewhere, "the door code of the mill");
      await keepText(other.name, roomId, "the door code of the other");
      await embedAll(name);
      expect(await forgetting().all({ roomId, agents: [name], words: "CODE door" })).toEqual({
        ...nothing,
        knowledge: 3,
      });
      expect(await known(name)).toEqual(["the gate is green", "the door code of the mill"]);
      expect(await vectorsOf(name)).toBe(2);
      expect(await known(other.name)).toHaveLength(1);
    });

    it("finds words in a title, but no parts of words", async () => {
      const [{ name }, roomId] = [await addAgent(database()), newRoom()];
      await keepText(name, roomId, "it is 4711", { title: "door-code" });
      await keepText(name, roomId, "all codes are long");
      expect(await forgetting().all({ roomId, agents: [name], words: "code" })).toEqual({ ...nothing, knowledge: 1 });
      expect(await known(name)).toEqual(["all codes are long"]);
    });

    it("of a person takes what was kept for them, or came with what they sent, and nothing of others", async () => {
      const [{ name }, roomId, ada, bob] = [await addAgent(database()), newRoom(), newUser(), newUser()];
      const sent = await settleEvent(database(), { roomId, sender: ada });
      await keepText(name, roomId, "for Ada", { requester: ada });
      await keepText(name, roomId, "of Ada's file", { requester: bob, eventId: sent.eventId });
      await keepText(name, roomId, "for Bob", { requester: bob });
      await keepText(name, roomId, "from before");
      const { knowledge } = await forgetting().all({ roomId, agents: [name], by: ada });
      expect(knowledge).toBe(2);
      expect(await known(name)).toEqual(["for Bob", "from before"]);
    });

    it("takes what people were asked about whether it is to be kept", async () => {
      const [{ name }, roomId, ada] = [await addAgent(database()), newRoom(), newUser()];
      const offers = new KnowledgeOffers(database());
      const add = (key: string, text: string) =>
        offers.add({
          ...{ key, roomId, entry: { source: `fileSummary:${key}`, text } },
          origin: { agent: name, title: "a", sources: [roomId], taint: [], eventId: null, roomId, requester: ada },
        });
      const [first, second] = [newKey(), newKey()];
      await add(first, "the quagga is here");
      await add(second, "the zebra is here");
      expect(await forgetting().all({ roomId, agents: [name], words: "quagga" })).toEqual({ ...nothing, knowledge: 1 });
      const kept = await database().sql<{ key: string }[]>`select key from knowledge_offers where agent = ${name}`;
      expect(kept).toEqual([{ key: second }]);
      expect((await forgetting().all({ roomId, agents: [name], by: bobOf(ada) })).knowledge).toBe(0);
      expect((await forgetting().all({ roomId, agents: [name], by: ada })).knowledge).toBe(1);
    });
    const bobOf = (ada: UserId) => `${ada}.other` as UserId;

    it("of a file does not come back when the file changes, until somebody has it kept again", async () => {
      const [{ name }, roomId, ada] = [await addAgent(database()), newRoom(), newUser()];
      const place = { share: "rooms", path: `/${roomId}/handbook.md` };
      const write = async (text: string) => {
        await new Files(database()).write({ ...place, contentType: "text/markdown", text, owner: ada });
        const [file] = await new Files(database()).read([place]);
        if (!file) throw new Error("the file is there");
        return file;
      };
      const knowledge = new Knowledge(database());
      const keepFile = async (text: string) => {
        const file = await write(text);
        const { entries, prefix } = sectionsAsKnowledge(file, text);
        const origin = originOfFile({ agent: name, roomId, requester: ada }, file, [roomId]);
        await knowledge.keep(entries, origin, prefix);
        return { entries, prefix, file };
      };
      const text = "# Door\n\nThe code is 4711.\n\n# Garden\n\nThe hedge is green.\n";
      await keepFile(text);
      expect(await forgetting().all({ roomId, agents: [name], words: "4711" })).toEqual({
        ...nothing,
        knowledge: 1,
        left: [`rooms:/${roomId}/handbook.md`],
      });
      expect(await known(name)).toEqual(["# Garden\n\nThe hedge is green."]);
      const changed = await write(`${text}More.\n`);
      expect((await knowledge.outdated()).filter(({ agent }) => agent === name)).toEqual([]);
      const cut = sectionsAsKnowledge(changed, changed.text ?? "");
      await knowledge.keepAnew(cut.entries, originOfFile({ agent: name }, changed, [roomId]), cut.prefix);
      expect(await known(name)).toHaveLength(1);
      await keepFile(`${text}Even more.\n`);
      expect(await known(name)).toHaveLength(2);
      await write(text);
      expect(await knowledge.outdated()).toContainEqual(
        expect.objectContaining({ agent: name, roomId, requester: ada, path: place.path }),
      );
    });

    it("empties the renders that may show it, and looks for its words elsewhere; not for the rest of a section", async () => {
      const [{ name, userId }, roomId, ada] = [await addAgent(database()), newRoom(), newUser()];
      await setMember(database(), roomId, userId, "join");
      let turns = 0;
      const turnOf = async () => {
        const [turn] = await database().sql<{ id: number }[]>`
          insert into turns (agent, room_id, number, reason, runner, requesters, state, started_at, ended_at, sources)
          values (${name}, ${roomId}, ${++turns}, 'x', 'x', array[${ada}], 'done', now(), now() + interval '1 minute', array[${roomId}])
          returning id`;
        await database().sql`
          insert into renders (turn_id, n, system, prompt, event_ids) values (${turn?.id ?? 0}, 1, 'you are', 'the heir is Leopold', '{}')`;
        return turn?.id ?? 0;
      };
      const before = await turnOf();
      await database().sql`update turns set ended_at = now() - interval '1 hour' where id = ${before}`;
      const secret = "the heir of the vault is cousin Leopold";
      const rest = "the hedge of the garden belongs to neighbours";
      await keepText(name, roomId, `${secret}\n${rest}`);
      const after = await turnOf();
      for (const body of ["So of the vault is cousin Leopold.", `And ${rest}.`])
        await settleEvent(database(), { roomId, sender: userId, content: { msgtype: "m.text", body } });
      expect((await forgetting().all({ roomId, agents: [name], words: "heir", by: undefined })).knowledge).toBe(1);
      const renders = await database().sql<{ id: number; prompt: string }[]>`
        select turn_id as id, prompt from renders where turn_id in (${before}, ${after}) order by turn_id`;
      expect(renders.map(({ prompt }) => prompt)).toEqual(["the heir is Leopold", ""]);
      await blankAll();
      const said = await database().sql<{ body: string }[]>`
        select content->>'body' as body from events where room_id = ${roomId} and type = 'm.room.message' order by seq`;
      expect(said.map(({ body }) => body)).toEqual([blank, `And ${rest}.`]);
    });
  });

  describe("forgetting what is in files", () => {
    const put = (path: string, text: string, more: Partial<FileWrite> = {}) =>
      new Files(database()).write({
        ...{ share: "rooms", path, contentType: "text/plain", text, owner: newUser() },
        ...more,
      });
    const textOf = async (path: string, share = "rooms") =>
      (await new Files(database()).read([{ share, path }]))[0]?.text;

    it("takes a message whose text file has the words, with the file, its copies and former versions", async () => {
      const [roomId, ada, bob] = [newRoom(), newUser(), newUser()];
      const content = { msgtype: "m.file", body: "list.txt" };
      const sent = await settleEvent(database(), { roomId, sender: ada, content });
      const other = await settleEvent(database(), { roomId, sender: bob, content });
      await database().sql`update events set media = '{"state":"kept"}' where room_id = ${roomId}`;
      const [path, copy, theirs] = [`/${roomId}/list.txt`, `/${roomId}/copy.txt`, `/${roomId}/theirs.txt`];
      await put(path, "tango77 is first", { eventId: sent.eventId });
      await put(path, "nothing", { eventId: sent.eventId });
      await put(copy, "copied", { eventId: sent.eventId });
      await put(theirs, "tango77 as well", { eventId: other.eventId });
      expect((await forgetting().all({ roomId, agents: [], words: "tango77", by: ada })).messages).toBe(1);
      expect((await new Events(database()).find(sent.eventId))?.content).toEqual({});
      expect(await Promise.all([path, copy, theirs].map((one) => textOf(one)))).toEqual([
        undefined,
        undefined,
        "tango77 as well",
      ]);
      expect(await database().sql`select 1 from file_versions where event_id = ${sent.eventId}`).toEqual([]);
      expect((await forgetting().all({ roomId, agents: [], words: "tango77" })).messages).toBe(1);
      expect(await textOf(theirs)).toBeUndefined();
    });

    it("goes through all messages with files, however many", async () => {
      const [roomId, ada] = [newRoom(), newUser()];
      for (let n = 0; n < 23; n++) {
        const { eventId } = await settleEvent(database(), { roomId, sender: ada });
        await put(`/${roomId}/${n}.txt`, `tango77 of ${n}`, { eventId });
      }
      await database().sql`update events set media = '{"state":"kept"}' where room_id = ${roomId}`;
      expect((await forgetting().all({ roomId, agents: [], words: "tango77" })).messages).toBe(23);
      expect(await database().sql`select 1 from files where share = 'rooms' and root = ${roomId}`).toEqual([]);
    });

    it("blanks lines of agents' files of the room, also of those before, and names files of people", async () => {
      const [{ name, userId }, roomId, elsewhere] = [await addAgent(database()), newRoom(), newRoom()];
      const text = "fine\nthe code is tango77\n";
      const own = { owner: userId };
      await put(`/${roomId}/report.md`, text, own);
      await put(`/${roomId}/report.md`, "another\nTANGO77!\n", own);
      await put(`/${roomId}/agents/${name}/memory/LOG.7-1.md`, text);
      await put(`/${roomId}/agents/${name}/memory/facts.json`, '{\n  "code": "tango77",\n  "door": "green"\n}\n');
      await put(`/${name}/made.md`, text, { ...own, share: "agents", sources: [roomId] });
      await put(`/${name}/other.md`, text, { ...own, share: "agents" });
      await put(`/${elsewhere}/report.md`, text, own);
      await put(`/${roomId}/people.md`, text);
      await put(`/${roomId}/tangos.md`, "tango77s");
      const what = { roomId, agents: [name], words: "tango77" };
      expect(await forgetting().all(what)).toMatchObject({ files: 4, left: [`rooms:/${roomId}/people.md`] });
      expect(await textOf(`/${roomId}/report.md`)).toBe(`another\n${blank}\n`);
      const [before] = await database().sql<{ text: string }[]>`
        select text_content as text from file_versions where path = ${`/${roomId}/report.md`}`;
      expect(before?.text).toBe(`fine\n${blank}\n`);
      expect(await textOf(`/${roomId}/agents/${name}/memory/LOG.7-1.md`)).toBe(`fine\n${blank}\n`);
      expect(JSON.parse((await textOf(`/${roomId}/agents/${name}/memory/facts.json`)) ?? "")).toEqual({
        door: "green",
      });
      expect(await textOf(`/${name}/made.md`, "agents")).toBe(`fine\n${blank}\n`);
      expect(await textOf(`/${name}/other.md`, "agents")).toBe(text);
      expect(await textOf(`/${elsewhere}/report.md`)).toBe(text);
      expect(await textOf(`/${roomId}/people.md`)).toBe(text);
      expect(await forgetting().all({ ...what, by: newUser() })).toMatchObject({ files: 0, left: [] });
    });

    it("names no file that somebody here may not read", async () => {
      const [{ name }, roomId, early, late] = [await addAgent(database()), newRoom(), newUser(), newUser()];
      await setMember(database(), roomId, early, "join");
      await database().sql`insert into history_visibility (room_id, position, closed) values (${roomId}, 0, true)`;
      await put(`/${roomId}/people.md`, "tango77");
      const what = { roomId, agents: [name], words: "tango77" };
      expect((await forgetting().all(what)).left).toHaveLength(1);
      await storeEvent(database(), { roomId });
      await setMember(database(), roomId, late, "join");
      expect((await forgetting().all(what)).left).toEqual([]);
    });
  });
});
