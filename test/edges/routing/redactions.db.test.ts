import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { digest, type EventId, HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { blank, printsOf } from "../../../src/base/lib/repeats.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { functionCall, functionResult, systemEvent, thought } from "../../../src/base/prompt/ephemeris.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Events, type StoredEvent } from "../../../src/domain/tables/events.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { Knowledge } from "../../../src/domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../../src/domain/tables/knowledge-offers.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { RedactionMarks } from "../../../src/domain/tables/redaction-marks.ts";
import { Renders } from "../../../src/domain/tables/renders.ts";
import { type CommandRow, SandboxCommandTable } from "../../../src/domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import { ScheduleTable } from "../../../src/domain/tables/schedules.ts";
import { Todos } from "../../../src/domain/tables/todos.ts";
import { type Turn, Turns } from "../../../src/domain/tables/turns.ts";
import { Windows } from "../../../src/domain/tables/windows.ts";
import { WrittenFiles } from "../../../src/domain/tables/written-files.ts";
import { blankRepetitions } from "../../../src/edges/routing/blanking.ts";
import { RedactionKeeper } from "../../../src/edges/routing/redaction-keeper.ts";
import { noApprovals } from "../../support/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, call, newKey, newRoom, settleEvent, wake } from "../../support/rows.ts";

const secret = "The safe opens with 4711, then turn the wheel left";
const repeated = `Ann says: ${secret}. I note that.`;
const at = new Date("2026-01-01T12:00:00Z");

onEachDatabase((database) => {
  const events = () => new Events(database());
  const marks = () => new RedactionMarks(database());
  let roomId: RoomId;
  let agent: AgentRow;
  let event: StoredEvent;
  let turns: Turns;
  let turn: Turn;
  beforeEach(async () => {
    roomId = newRoom();
    agent = await addAgent(database());
    event = await settleEvent(database(), { roomId, content: { msgtype: "m.text", body: secret } });
    turns = new Turns(database(), newKey());
    turn = await begin(roomId);
  });

  const begin = async (room: RoomId, by = agent): Promise<Turn> => {
    await wake(database(), { agent: by.name, roomId: room });
    const claimed = await turns.claim({ agent: by.name, roomId: room }, 4);
    if (typeof claimed === "string") throw new Error(`the conversation is ${claimed}`);
    return claimed;
  };
  const parts = () => ({
    events: events(),
    marks: marks(),
    files: new WrittenFiles(database()),
    approvals: noApprovals,
  });
  const redact = async () => {
    await events().redact(event.eventId, printsOf([secret], event.eventId));
    const prints = printsOf([secret], event.eventId);
    return blankRepetitions({ eventId: event.eventId, places: [roomId], prints }, parts());
  };
  const entries = async (of: Turn) =>
    (await database().sql`select entry from ephemeris where turn_id = ${of.id} order by n, part`).map(
      ({ entry }) => entry,
    );

  describe("after a redaction", () => {
    it("thoughts, calls and results that repeat its words are blanked, and nothing else is", async () => {
      const said = [
        thought(at, repeated),
        functionCall("fc1.1", "FS_Write", { path: "rooms:/a.md", content: `${secret} & more`, version: 1 }),
        functionResult("fc1.1", systemEvent(at, secret.slice(4))),
        thought(at, "The safe opens. I will wait."),
      ];
      const key = newKey();
      const operation = call({ key, summary: repeated, input: { path: "a.md", content: repeated, deep: [null, 1] } });
      const result = {
        text: repeated,
        thought: "",
        calls: [{ id: "1", name: "X", arguments: JSON.stringify({ a: secret }) }],
      };
      await turns.commit(turn, {
        n: 0,
        name: "model",
        result,
        ephemeris: said.map((one) => render(one)),
        operations: [{ ...operation, state: "failed", result: repeated, error: repeated }],
        subAgent: "planner",
        ends: true,
      });
      await redact();
      const [first, second, third, last] = await entries(turn);
      expect(first).toBe(render(thought(at, blank)));
      expect(second).toBe(
        render(functionCall("fc1.1", "FS_Write", { path: "rooms:/a.md", content: blank, version: 1 })),
      );
      expect(third).toBe(render(functionResult("fc1.1", systemEvent(at, blank))));
      expect(last).toBe(render(said[3] ?? thought(at, "")));
      const [row] = await new Operations(database()).newest({ agent: agent.name, roomId }, 1);
      expect(row).toMatchObject({ summary: blank, result: blank, error: blank });
      expect(row?.input).toEqual({ path: "a.md", content: blank, deep: [null, 1] });
      const [step] = await database().sql`select result from steps where turn_id = ${turn.id}`;
      expect(JSON.stringify(step)).not.toContain("4711");
    });

    it("operations that repeat its words are withdrawn before they are blanked", async () => {
      const operation = call({ key: newKey(), summary: "Write a.md", input: { path: "a.md", content: repeated } });
      await turns.commit(turn, { n: 0, name: "x", result: {}, operations: [{ ...operation, state: "asked" }] });
      const withdrawn: unknown[] = [];
      const approvals = {
        withdrawBlanked: async (id: number, texts: object) => {
          const [row] = await database().sql`select input from operations where id = ${id}`;
          withdrawn.push([row?.input, texts]);
        },
      };
      const prints = printsOf([secret], event.eventId);
      await events().redact(event.eventId, prints);
      await blankRepetitions({ eventId: event.eventId, places: [roomId], prints }, { ...parts(), approvals });
      expect(withdrawn).toEqual([[{ path: "a.md", content: repeated }, { input: { path: "a.md", content: blank } }]]);
    });

    it("commands on computers that repeat its words are blanked, with their output, in its room and from it", async () => {
      const [elsewhere, apart] = [newRoom(), newRoom()];
      const commands = new SandboxCommandTable(database());
      const told = await addAgent(database());
      const begun = async (command: string, room: RoomId, sources: readonly RoomId[], key = newKey(), of = agent) => {
        const at = { agent: of.name, roomId: room };
        if ((await new SandboxTable(database()).use(at)) === "new")
          await new SandboxTable(database()).claim(at, newKey(), "default");
        return commands.begin({ ...at, key, boot: "b", command, requesters: [], sources, isBackground: true });
      };
      const [mine, theirs] = [newKey(), newKey()];
      const operations = [mine, theirs].map((key) => ({ ...call({ key }), state: "done" as const }));
      await turns.commit(turn, { n: 0, name: "x", result: {}, operations });
      const here = await begun(`echo ${secret}`, roomId, []);
      const made = await begun(`echo ${secret}`, elsewhere, [roomId]);
      const named = await begun(`echo ${secret}`, apart, [], mine, told);
      const another = await begun(`echo ${secret}`, apart, [], newKey(), told);
      const printed = await begun("cat a.md", roomId, []);
      await commands.finish(printed.key, { reason: "exit", code: 0, stdout: { text: repeated, isCut: false } });
      await redact();
      const now = async ({ key }: CommandRow) => (await commands.find(key))?.command;
      expect(await Promise.all([here, made, named, another].map(now))).toEqual([blank, blank, blank, `echo ${secret}`]);
      const stdout = { text: blank, isCut: false };
      expect(await commands.find(printed.key)).toMatchObject({
        command: "cat a.md",
        outcome: { reason: "exit", code: 0, stdout },
      });
    });

    it("a turn that is open keeps its journal until it has ended", async () => {
      await turns.commit(turn, { n: 0, name: "model", result: { text: repeated } });
      const { open } = await redact();
      expect(open).toEqual([turn.id]);
      expect(await turns.journal(turn)).toMatchObject([{ result: { text: repeated } }]);
      await turns.commit(turn, {
        n: 1,
        name: "model",
        result: {},
        ephemeris: [render(thought(at, repeated))],
        ends: true,
      });
      expect((await redact()).open).toEqual([]);
      expect(await turns.journal(turn)).toMatchObject([{ result: { text: blank } }, {}]);
      expect(await entries(turn)).toEqual([render(thought(at, blank))]);
    });

    it("todos, schedules, notes, windows and what is known are blanked or gone", async () => {
      const place = { agent: agent.name, owner: agent.owner, here: roomId };
      const sources = [roomId];
      const todos = new Todos(database());
      await todos.add(place, [repeated, "buy bread"], { key: newKey(), sources });
      const schedules = new ScheduleTable(database());
      const planned = { key: newKey(), agent: agent.name, roomId: HOME, cron: null, timeZone: "UTC", text: repeated };
      await schedules.add({ ...planned, madeBy: agent.owner, sources, taint: [], nextAt: new Date("2099-01-01") });
      const windows = new Windows(database());
      const seat = { ...place, userId: agent.userId };
      const draft = {
        srcType: "search",
        title: "t",
        contentType: "text/plain",
        content: null,
        height: 9,
        turnsLeft: 5,
      } as const;
      const opened = { ...draft, arguments: "", sources, taint: [], key: newKey() };
      await windows.open(seat, { ...opened, src: "rooms:/", content: repeated });
      await windows.open(seat, { ...opened, src: "users:/" });
      const queries = JSON.stringify([{ query: "how does it open?", answer: repeated, version: 1 }]);
      await database()
        .sql`update windows set queries = ${queries}::text::jsonb where agent = ${agent.name} and src = 'users:/'`;
      const knowledge = new Knowledge(database());
      const origin = { agent: agent.name, title: "a", sources: [roomId], taint: [], eventId: null };
      const entry = { source: "fileChunk:a[0]", text: repeated };
      await knowledge.keep([entry], origin);
      await new KnowledgeOffers(database()).add({ key: newKey(), roomId, entry, origin });
      await redact();
      expect((await todos.list(place)).map(({ name }) => name)).toEqual([blank, "buy bread"]);
      expect((await schedules.find(planned.key))?.text).toBe(blank);
      const left = await database().sql`select src, queries from windows where agent = ${agent.name}`;
      expect([...left]).toEqual([
        { src: "users:/", queries: [{ query: "how does it open?", answer: blank, version: 1 }] },
      ]);
      expect(await database().sql`select 1 from knowledge where agent = ${agent.name}`).toHaveLength(0);
      expect(await database().sql`select 1 from knowledge_offers where agent = ${agent.name}`).toHaveLength(0);
    });

    it("a letter is blanked, with what its recipient made of it, though it never saw the room", async () => {
      const other = await addAgent(database());
      const key = newKey();
      const letter = {
        agent: other.name,
        roomId: HOME,
        reason: "mailbox",
        key,
        note: render(systemEvent(at, secret)),
      } as const;
      const told = { ...call({ key }), state: "done" } as const;
      await turns.commit(turn, { n: 0, name: "x", result: {}, operations: [told], wakes: [letter] });
      const theirs = await turns.claim({ agent: other.name, roomId: HOME }, 4);
      if (typeof theirs === "string") throw new Error(theirs);
      await turns.commit(theirs, {
        n: 0,
        name: "x",
        result: {},
        ephemeris: [render(thought(at, repeated))],
        ends: true,
      });
      await redact();
      expect(await entries(theirs)).toEqual([render(thought(at, blank))]);
      const [row] = await database().sql`select note from wakes where key = ${key}`;
      expect(row?.note).toBe(render(systemEvent(at, blank)));
    });

    it("lines of files that its turns have written are blanked, in every version; what others wrote stays", async () => {
      const files = new Files(database());
      const file = (path: string) => ({ share: "rooms", path: `/${roomId}/${path}` });
      const write = (path: string, text: string, key: string, owner: UserId = agent.userId) =>
        files.write({
          ...file(path),
          contentType: "text/markdown",
          text,
          owner,
          key: digest(key, `rooms:/${roomId}/${path}`),
        });
      const [mine, own, theirs] = [newKey(), newKey(), newKey()];
      await write("old.md", `Anns recipe\n${secret}`, theirs);
      await database().sql`update files set updated_at = now() - interval '1 day' where path = ${file("old.md").path}`;
      await turns.commit(turn, {
        n: 0,
        name: "x",
        result: {},
        operations: [mine, own].map((key) => ({ ...call({ key }), state: "done" })),
      });
      await write("notes.md", `# Notes\n${repeated}\nbuy bread\n`, mine);
      await write("notes.md", `# Notes\n\n${repeated}\n`, own);
      await write("theirs.md", repeated, theirs);
      await write("old.md", `Anns recipe\n${secret}\n\nagain: ${secret}`, mine);
      await redact();
      const text = async (path: string) => (await files.read([file(path)]))[0]?.text;
      expect(await text("notes.md")).toBe(`# Notes\n\n${blank}\n`);
      expect((await files.version(file("notes.md"), 1))?.text).toBe(`# Notes\n${blank}\nbuy bread\n`);
      expect(await text("theirs.md")).toBe(repeated);
      expect(await text("old.md")).toBe(`Anns recipe\n${secret}\n\n${blank}`);
    });

    it("names of files and folders that its turns have given are blanked, in listings and windows, and no others", async () => {
      const files = new Files(database());
      const name = "The safe opens with 4711 then";
      const root = `/${roomId}`;
      const write = (path: string, key: string, text: string | null = "x") =>
        files.write({
          share: "rooms",
          path: `${root}/${path}`,
          contentType: text === null ? "inode/directory" : "text/plain",
          text,
          owner: agent.userId,
          key: digest(key, `rooms:${root}/${path}`),
        });
      const [mine, theirs] = [newKey(), newKey()];
      await turns.commit(turn, {
        n: 0,
        name: "x",
        result: {},
        operations: [{ ...call({ key: mine }), state: "done" }],
      });
      await write(`${name}.md`, mine, "first");
      await write(`${name}.md`, theirs, "second");
      await write(`${name}.txt`, theirs);
      await write(`sub/${name}`, mine, null);
      await write(`sub/${name}/${name}.md`, theirs);
      await write(`other/${name}.md`, mine);
      await write(`other/${name}!.md`, mine);
      await write("The safe/opens with/4711 then", mine);
      const seat = { agent: agent.name, owner: agent.owner, userId: agent.userId, here: newRoom() };
      const draft = { srcType: "file", contentType: "text/plain", content: null, height: 9, turnsLeft: 5 } as const;
      const opened = { ...draft, arguments: "", sources: [], taint: [] };
      await new Windows(database()).open(seat, { ...opened, src: `rooms:${root}/sub/${name}`, key: newKey() });
      await new Windows(database()).open(seat, { ...opened, src: `rooms:${root}/${name}.txt`, key: newKey() });
      await redact();
      const paths = (await files.list("rooms", root, null, 99)).map(({ path }) => path.slice(root.length + 1));
      expect(paths.map((path) => path.replace(/-[0-9a-f]{8}/, "-N"))).toEqual([
        `${name}.txt`,
        `other/${blank}-N.md`,
        `other/${blank}.md`,
        `sub/${blank}`,
        `sub/${blank}/${name}.md`,
        `${blank}.md`,
        `${blank}/${blank}/${blank}`,
      ]);
      const renamed = { share: "rooms", path: `${root}/${blank}.md` };
      expect((await files.read([renamed]))[0]?.text).toBe("second");
      expect((await files.version(renamed, 1))?.text).toBe("first");
      const left = await database().sql`select src from windows where agent = ${agent.name}`;
      expect([...left]).toEqual([{ src: `rooms:${root}/${name}.txt` }]);
    });

    it("a file that an agent sent has another name for agents, too", async () => {
      const path = `/${roomId}/media/The safe opens with 4711 then.png`;
      const content = { msgtype: "m.image", body: "look", filename: "The safe opens with 4711 then.png" };
      const { eventId } = await settleEvent(database(), { roomId, sender: agent.userId, content });
      const draft = { share: "rooms", path, contentType: "image/png", text: null, binary: Buffer.from("x") };
      await new Files(database()).write({ ...draft, owner: agent.userId, eventId, key: digest("media", eventId) });
      const media = { state: "kept", path: `rooms:${path}`, contentType: "image/png", bytes: 1 };
      await database().sql`update events set media = ${JSON.stringify(media)}::text::jsonb where event_id = ${eventId}`;
      await redact();
      const sent = await events().find(eventId);
      expect(sent?.content).toEqual({ msgtype: "m.image", body: "look", filename: blank });
      expect(sent?.media).toEqual({ ...media, path: `rooms:/${roomId}/media/${blank}.png` });
    });

    it("what it said elsewhere is blanked, with what another agent there made of it and the bot answered", async () => {
      const elsewhere = newRoom();
      const bot = "@clevernet:test" as UserId;
      const member = { userId: bot, membership: "join", displayName: undefined, isDirect: false, kind: "bot" } as const;
      await settleEvent(
        database(),
        { roomId: elsewhere, sender: bot, type: "m.room.member", stateKey: bot },
        { member },
      );
      const other = await addAgent(database());
      const say = async (by: Turn, sender: UserId, room: RoomId) => {
        const key = newKey();
        const content = { msgtype: "m.notice", body: repeated };
        const draft = { key, roomId: room, sender, kind: "message", content } as const;
        const entry = render(thought(at, repeated));
        await turns.commit(by, { n: 0, name: "x", result: {}, outbox: [draft], ephemeris: [entry], ends: true });
        return settleEvent(database(), { roomId: room, sender, content: { ...content, "org.clevernet.key": key } });
      };
      const first = await say(turn, agent.userId, elsewhere);
      const theirs = await begin(elsewhere, other);
      const answered = await say(theirs, other.userId, elsewhere);
      const told = await settleEvent(database(), { roomId: elsewhere, sender: bot, content: { body: repeated } });
      await redact();
      const bodies = [first, answered, told].map(async ({ eventId }) => (await events().find(eventId))?.content.body);
      expect(await Promise.all(bodies)).toEqual([blank, blank, blank]);
      expect(await entries(theirs)).toEqual([render(thought(at, blank))]);
    });

    it("what an agent has said stays said, and is blanked where agents are shown it", async () => {
      const key = newKey();
      const draft = {
        key,
        roomId,
        sender: agent.userId,
        kind: "message",
        content: { msgtype: "m.text", body: repeated },
      } as const;
      await turns.commit(turn, { n: 0, name: "x", result: {}, outbox: [draft], ends: true });
      const content = { msgtype: "m.text", body: repeated, "org.clevernet.key": key };
      const { eventId } = await settleEvent(
        database(),
        { roomId, sender: agent.userId, content },
        { shownChars: 9, echoOf: key },
      );
      const foreign = await settleEvent(database(), { roomId, content });
      const { outbox } = await redact();
      expect(outbox).toEqual([]);
      expect((await events().find(eventId))?.content).toEqual({ ...content, body: blank });
      expect((await events().find(foreign.eventId))?.content).toEqual(content);
      const [row] = await database().sql`select content from outbox where key = ${key}`;
      expect(row?.content).toEqual({});
    });

    it("what a thoughts room was told is taken back", async () => {
      const thoughts = newRoom();
      const bot = "@clevernet:test" as UserId;
      await database().sql`update agents set thoughts_room = ${thoughts} where name = ${agent.name}`;
      await settleEvent(database(), { roomId: thoughts, sender: bot, content: { body: "all is well" } }, {});
      const told = await settleEvent(database(), { roomId: thoughts, sender: bot, content: { body: repeated } }, {});
      const { outbox } = await redact();
      expect(outbox).toMatchObject([
        { roomId: thoughts, sender: bot, kind: "withdrawal", content: { "m.relates_to": { event_id: told.eventId } } },
      ]);
      expect((await events().find(told.eventId))?.content).toEqual({});
    });

    it("renders of its turns are emptied where something in them was blanked, and only then", async () => {
      const renders = new Renders(database());
      const shown = { turnId: turn.id, n: 0, system: "s", prompt: "p", tools: "", toolset: "", subAgent: null };
      await renders.keep({ ...shown, eventIds: [] });
      await redact();
      expect(await renders.of(turn.id, [])).toMatchObject([{ prompt: "p" }]);
      await turns.commit(turn, { n: 1, name: "x", result: {}, ephemeris: [render(thought(at, repeated))] });
      await redact();
      expect(await renders.of(turn.id, [])).toMatchObject([{ prompt: "" }]);
    });

    it("a turn that never was shown its room, or had ended before, keeps what it said", async () => {
      const elsewhere = await begin(newRoom(), await addAgent(database()));
      for (const one of [turn, elsewhere])
        await turns.commit(one, {
          n: 0,
          name: "x",
          result: {},
          ephemeris: [render(thought(at, repeated))],
          ends: true,
        });
      await database().sql`update turns set ended_at = now() - interval '1 day' where id = ${turn.id}`;
      await redact();
      expect([await entries(turn), await entries(elsewhere)].flat()).toEqual(
        Array(2).fill(render(thought(at, repeated))),
      );
    });
  });

  describe("an attachment that shows a turn", () => {
    const file = (shows: readonly EventId[]) => {
      const content = { name: "turn-1.md", text: `shown: ${secret}` };
      return { key: newKey(), roomId, sender: agent.userId, kind: "file", content, shows } as const;
    };

    it("is taken back with an event that it shows, sent or not, and its text is gone", async () => {
      const [sent, waiting, other] = [file([event.eventId]), file([event.eventId]), file(["$other" as EventId])];
      await new Outbox(database()).add([sent, waiting, other]);
      await new Outbox(database()).sent([{ key: sent.key, eventId: "$attached" as EventId }]);
      const { shown } = await events().redact(event.eventId);
      expect(shown.map(({ key }) => key).sort()).toEqual([sent.key, waiting.key].sort());
      const rows = await database()
        .sql`select key from outbox where room_id = ${roomId} and content::text like '%4711%'`;
      expect(rows.map(({ key }) => key)).toEqual([other.key]);
    });

    it("is taken back where it shows what an agent made of the event", async () => {
      const derived = file(["$other" as EventId]);
      await new Outbox(database()).add([derived]);
      const { outbox } = await redact();
      expect(outbox).toMatchObject([{ kind: "withdrawal", about: derived.key, roomId, sender: agent.userId }]);
    });

    it("is not queued once an event that it shows is redacted", async () => {
      await events().redact(event.eventId);
      const late = file([event.eventId]);
      await new Outbox(database()).add([late]);
      expect(await new Outbox(database()).has(late.key)).toBe(false);
    });
  });

  describe("the mark of a redaction", () => {
    const prints = () => printsOf([secret], event.eventId);
    const left = async () =>
      (await database().sql`select 1 from redactions where event_id = ${event.eventId}`).length > 0;
    const age = (by: string) =>
      database()
        .sql`update redactions set redacted_at = redacted_at - ${by}::interval, due_at = due_at - ${by}::interval
        where event_id = ${event.eventId}`;

    it("is made with the redaction, holds no words, and outlives a process that took it", async () => {
      await events().redact(event.eventId, prints());
      await events().redact(event.eventId, []);
      const [row] = await database().sql`select * from redactions where event_id = ${event.eventId}`;
      expect(row?.prints).toEqual(prints());
      await age("1 year");
      expect(await marks().take()).toMatchObject({ eventId: event.eventId });
      expect(await marks().take()).not.toMatchObject({ eventId: event.eventId });
      await age("1 year");
      expect(await marks().take()).toMatchObject({ eventId: event.eventId });
      await database().sql`delete from redactions where event_id = ${event.eventId}`;
    });

    it("stays until a minute has gone by, and turns that were open are over", async () => {
      await events().redact(event.eventId, prints());
      const mark = { eventId: event.eventId, places: [roomId], prints: prints() };
      await marks().putBack(mark, []);
      expect(await left()).toBe(true);
      await database().sql`update turns set started_at = started_at - interval '2 minutes' where id = ${turn.id}`;
      await age("70 seconds");
      await marks().putBack(mark, [turn.id]);
      expect(await left()).toBe(true);
      await marks().putBack(mark, []);
      expect(await left()).toBe(false);
    });

    it("is worked on by the keeper, whichever process was to do it", async () => {
      await turns.commit(turn, { n: 0, name: "x", result: {}, ephemeris: [render(thought(at, repeated))], ends: true });
      await events().redact(event.eventId, prints());
      const outbox = new Outbox(database());
      const keeper = new RedactionKeeper({
        ...parts(),
        outbox,
        clock: systemClock,
        log: silentLog,
        onOutbox: () => {},
      });
      keeper.start();
      await eventually(async () => (await entries(turn))[0] === render(thought(at, blank)), { what: "the blanking" });
      await keeper.stop();
    });
  });
});
