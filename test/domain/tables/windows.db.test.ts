import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { layout } from "../../../src/base/prompt/layout.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { Desks } from "../../../src/domain/desk/desk.ts";
import type { WindowAction } from "../../../src/domain/desk/window-action.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { type Turn, Turns } from "../../../src/domain/tables/turns.ts";
import { windowsMax } from "../../../src/domain/tables/windows.ts";
import { SubAgents } from "../../../src/engine/operations/sub-agents.ts";
import { toolContext } from "../../../src/engine/operations/tool-context.ts";
import { Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { Guides } from "../../../src/engine/sight/guides.ts";
import { scrollHistories } from "../../../src/engine/sight/histories.ts";
import { exampleWorld } from "../../base/prompt/worlds.ts";
import { shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newEventId, newKey, newRoom, newUser, rightsOf, setMember, settleEvent, wake } from "../../support/rows.ts";
import { ScriptedModel, userText } from "../../support/scripted-model.ts";

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");

const none = new SubAgents(new Map(), new Toolbox([]), undefined);

onEachDatabase((database) => {
  let model: ScriptedModel;
  let agent: Agent;
  let room: RoomId;
  let owner: UserId;
  let notes: string;
  let rights: Rights;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    room = newRoom();
    rights = await rightsOf(database(), { test: "operate" });
    owner = newUser();
    const name = newKey().replace(" ", "") as AgentName;
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: "# P\n", settings: parseAgentSettings({}, "test") }, "test");
    const found = await directory.find(name);
    if (!found) throw new Error("no agent");
    agent = found;
    for (const userId of [owner, agent.userId]) await setMember(database(), room, userId, "join");
    notes = `agents:/${name}/notes.txt`;
    await write(notes, numbered(1, 100));
  });
  afterEach(() => model.stop());

  const write = (path: string, text: string) => {
    const [share = "", rest = ""] = [path.slice(0, path.indexOf(":")), path.slice(path.indexOf(":") + 1)];
    return new Files(database()).write({ share, path: rest, contentType: "text/plain", text, owner });
  };
  const newDesks = () => new Desks(database(), shares(database()));
  /** Context of one operation. */
  const context = (key = newKey(), here = room) => {
    const origin = {
      agent,
      roomId: here,
      thread: undefined,
      chain: "chain",
      by: "model" as const,
      requesters: [owner],
      sources: [here],
      taint: [],
    };
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [] });
    return toolContext(mind, { ...origin, key, signal: new AbortController().signal });
  };
  const open = async (path = notes, top?: number) => {
    const { files, windows } = await context();
    const { contentType } = await files.read(path);
    return windows.open({ srcType: "file", src: path, contentType, sources: files.sources, top });
  };
  const act = async (windowId: string, action: WindowAction, argument = "", key = newKey(), here = room) =>
    (await context(key, here)).windows.act(windowId, action, argument);
  const seen = (here = room) => newDesks().of(agent, here);
  const onlyWindow = async () => {
    const { windows } = await seen();
    if (windows.length !== 1 || !windows[0]) throw new Error(`${windows.length} windows`);
    return windows[0];
  };
  const turns = () => new Turns(database(), "runner");
  const newTurn = async (): Promise<Turn> => {
    await wake(database(), { agent: agent.name, roomId: room }, { requester: owner });
    const claimed = await turns().claim({ agent: agent.name, roomId: room }, 4);
    if (typeof claimed === "string") throw new Error(claimed);
    return claimed;
  };
  const end = (turn: Turn) => turns().commit(turn, { n: 0, name: "model", result: {}, ends: true });

  describe("a window on a file", () => {
    it("shows 20 lines, the size of the whole, and how long it stays", async () => {
      const { said, windowId } = await open();
      expect(said).toBe(`Window opened with ID ${windowId}. Window ${windowId} shows lines 1 to 20 of 100.`);
      expect(await onlyWindow()).toMatchObject({
        windowId: expect.stringMatching(/^file_\d+$/),
        lines: 100,
        top: 1,
        shown: numbered(1, 20),
        closesIn: 2,
        hasAutorefresh: true,
        isClosed: false,
      });
    });

    it("is turned to where the file is opened again, and goes to the line that is asked for", async () => {
      const first = await open();
      await act(first.windowId, "scroll", "10");
      expect((await open()).windowId).toBe(first.windowId);
      expect((await onlyWindow()).top).toBe(11);
      await open(notes, 50);
      expect((await onlyWindow()).top).toBe(50);
    });

    it("scrolls by lines and by pages, goes, is made larger, and stays within the file", async () => {
      const { windowId } = await open();
      const tops: number[] = [];
      for (const [action, argument] of [
        ["scroll", ""],
        ["scroll", "-5"],
        ["scroll", "-500"],
        ["goto", "42"],
        ["goto", "end"],
        ["resize", "30"],
        ["scroll", "999999"],
      ] as const) {
        await act(windowId, action, argument);
        tops.push((await onlyWindow()).top);
      }
      expect(tops).toEqual([21, 16, 1, 42, 81, 71, 71]);
    });

    it("is maximized, minimized and restored", async () => {
      const { windowId } = await open();
      await act(windowId, "maximize");
      expect(await onlyWindow()).toMatchObject({ state: "maximized", shown: numbered(1, 100), isTruncated: false });
      await act(windowId, "minimize");
      expect((await onlyWindow()).state).toBe("minimized");
      await act(windowId, "restore");
      expect(await onlyWindow()).toMatchObject({ state: "normal", shown: numbered(1, 20) });
    });

    it("says that what it shows is cut at its limit of characters", async () => {
      await write(notes, `${"x".repeat(9_000)}\nsecond\n`);
      await open();
      expect(await onlyWindow()).toMatchObject({ shown: "x".repeat(8_000), isTruncated: true, lines: 2 });
    });

    it("follows the file: what is shown stays within what is left of it, and a file that is gone is said to be", async () => {
      const { windowId } = await open();
      await act(windowId, "goto", "end");
      await write(notes, numbered(1, 30));
      expect(await onlyWindow()).toMatchObject({ top: 11, lines: 30, shown: numbered(11, 30) });
      await new Files(database()).remove("agents", [notes.slice("agents:".length)], newKey());
      expect(await onlyWindow()).toMatchObject({ lines: 0, attributes: { problem: "the file is not there any more" } });
    });

    it("of more than 64 KB shows what it would of a short one, near its beginning and far from it", async () => {
      const lines = 20_000;
      await write(notes, numbered(1, lines));
      const { windowId } = await open();
      const shows = async (from: number, to = from + 19) =>
        expect(await onlyWindow()).toMatchObject({
          lines,
          chars: numbered(1, lines).length,
          shown: numbered(from, to),
        });
      await shows(1);
      for (const [action, argument, from] of [
        ["scroll", "900", 901],
        ["goto", "end", 19_981],
        ["goto", "6000", 6_000],
        ["goto", "1", 1],
      ] as const) {
        const { said } = await act(windowId, action, argument);
        expect(said).toBe(`Window ${windowId} shows lines ${from} to ${from + 19} of ${lines}.`);
        await shows(from);
      }
    });

    it("of more than 64 KB is read once for each version", async () => {
      await write(notes, numbered(1, 20_000));
      await open();
      const desks = newDesks();
      for (const last of ["first", "first", "second"]) {
        if (last === "second") await write(notes, `second\n${numbered(1, 20_000)}`);
        const { windows } = await desks.of(agent, room);
        expect(windows[0]?.shown).toMatch(last === "second" ? /^second\n/ : /^line 1\n/);
      }
    });

    it("is carried one action further by one operation, however often that is tried", async () => {
      const { windowId } = await open();
      for (let attempt = 0; attempt < 3; attempt += 1) await act(windowId, "scroll", "10", "the same");
      expect((await onlyWindow()).top).toBe(11);
    });

    it("is not there for another conversation", async () => {
      const { windowId } = await open();
      const other = newRoom();
      for (const userId of [owner, agent.userId]) await setMember(database(), other, userId, "join");
      expect((await seen(other)).windows).toEqual([]);
      await expect(act(windowId, "pin", "", newKey(), other)).rejects.toThrow(/There is no window/);
    });

    it("that is refused an argument says which one it needs", async () => {
      const { windowId } = await open();
      for (const [action, argument] of [
        ["scroll", "down"],
        ["goto", ""],
        ["resize", "0"],
        ["query", ""],
      ] as const)
        await expect(act(windowId, action, argument)).rejects.toThrow(/^The argument must be /);
    });
  });

  describe("a turn's end", () => {
    it("brings a window nearer to its own: after two it is closed", async () => {
      const turn = await newTurn();
      await open();
      expect((await onlyWindow()).closesIn).toBe(2);
      await end(turn);
      expect((await onlyWindow()).closesIn).toBe(1);
      await end(await newTurn());
      expect((await seen()).windows).toEqual([]);
    });

    it("counts once, also where its statement is repeated and where the turn was taken over before", async () => {
      await open();
      const lost = await newTurn();
      const taken = await newTurn().catch(() => undefined);
      expect(taken === undefined || taken.id === lost.id).toBe(true);
      const turn = taken ?? lost;
      await end(turn);
      await end(turn);
      await turns().close(turn, "failed", "again");
      expect((await onlyWindow()).closesIn).toBe(1);
    });

    it("counts where the turn fails, too", async () => {
      await open();
      await turns().close(await newTurn(), "failed", "a bug");
      expect((await onlyWindow()).closesIn).toBe(1);
    });

    it("takes maximized from a window that is not pinned, and nothing from one that is", async () => {
      const [one, other] = [await open(), await open(`agents:/${agent.name}/persona.md`)];
      await act(one.windowId, "maximize");
      await act(other.windowId, "maximize");
      await act(other.windowId, "pin");
      await end(await newTurn());
      const { windows } = await seen();
      expect(windows.map(({ windowId, state, closesIn }) => ({ windowId, state, closesIn }))).toEqual([
        { windowId: one.windowId, state: "normal", closesIn: 1 },
        { windowId: other.windowId, state: "maximized", closesIn: undefined },
      ]);
      await end(await newTurn());
      expect((await onlyWindow()).windowId).toBe(other.windowId);
    });

    it("gives back to the windows that are always there what they usually show", async () => {
      await act("persona", "goto", "2");
      expect((await seen()).changes.size).toBe(1);
      await end(await newTurn());
      expect((await seen()).changes.size).toBe(0);
    });

    it("leaves the windows of other conversations alone", async () => {
      await open();
      const other = newRoom();
      for (const userId of [owner, agent.userId]) await setMember(database(), other, userId, "join");
      await wake(database(), { agent: agent.name, roomId: other }, { requester: owner });
      const [here] = [room];
      room = other;
      await end(await newTurn());
      room = here;
      expect((await onlyWindow()).closesIn).toBe(2);
    });
  });

  describe("walls", () => {
    it("a window says only that it is closed while somebody is here who may not read its source", async () => {
      const { windowId } = await open();
      const stranger = newUser();
      await setMember(database(), room, stranger, "join");
      const closed = await onlyWindow();
      expect(closed).toMatchObject({ windowId, isClosed: true, src: "", attributes: {}, shown: "", queries: [] });
      expect((await seen()).sources).toEqual([]);
      for (const action of ["scroll", "query", "maximize", "pin"] as const)
        await expect(act(windowId, action, "1")).rejects.toThrow(/closed to the people here/);
      await setMember(database(), room, stranger, "leave");
      expect(await onlyWindow()).toMatchObject({ isClosed: false, shown: numbered(1, 20) });
      expect((await seen()).sources).toEqual([""]);
    });

    it("a window that is closed to the people here can be closed", async () => {
      const { windowId } = await open();
      await setMember(database(), room, newUser(), "join");
      await act(windowId, "close");
      expect((await seen()).windows).toEqual([]);
    });

    it("a window on a file that came with an event names the event, so that its redaction finds what was shown", async () => {
      const path = `rooms:/${room}/media/a.txt`;
      const eventId = newEventId();
      const [share, rest] = ["rooms", path.slice("rooms:".length)];
      await new Files(database()).write({ share, path: rest, contentType: "text/plain", text: "sent", owner, eventId });
      await open(path);
      const window = await onlyWindow();
      expect(window.attributes).toEqual({ eventId });
      expect(layout({ ...exampleWorld, windows: [window] }, "seed").eventIds).toContain(eventId);
    });

    it("what people wrote into a room's files is escaped, what agents wrote is shown as it is", async () => {
      const path = `rooms:/${room}/a.txt`;
      await write(path, "text");
      await open(path);
      expect((await onlyWindow()).isRaw).toBe(false);
      await open();
      expect((await seen()).windows.map(({ isRaw }) => isRaw)).toEqual([false, true]);
    });
  });

  describe("a search", () => {
    const search = async (query: string, mode: "filename" | "content") =>
      (await context()).windows.open({
        srcType: "search",
        src: `agents:/${agent.name}`,
        arguments: JSON.stringify({ query, mode }),
        attributes: { query, searchMode: mode },
      });

    it("shows what was found until it is refreshed", async () => {
      const { windowId, shown } = await search("notes", "filename");
      const opened = shown && render(shown);
      expect(opened).toContain(
        `windowId="${windowId}" srcType="search" src="agents:/${agent.name}" contentType="text/lmml"`,
      );
      expect(opened).toContain(`<searchResult path="${notes}" score="1.0">\n      <match line="1">notes.txt</match>`);
      expect(await onlyWindow()).toMatchObject({ lines: 1, isRefreshable: true });
      await write(notes.replace("notes", "more-notes"), "text");
      expect((await onlyWindow()).lines).toBe(1);
      await act(windowId, "refresh");
      expect((await onlyWindow()).lines).toBe(2);
    });

    it("cites the lines, whatever stands in them, as text", async () => {
      await write(notes, "</match></content><window>");
      const { shown } = await search("window", "content");
      expect(shown && render(shown)).toContain('<match line="1">&lt;/match>&lt;/content>&lt;window></match>');
    });

    it("is closed to those who may not read one of the files in it", async () => {
      await search("notes", "filename");
      await setMember(database(), room, newUser(), "join");
      expect((await onlyWindow()).isClosed).toBe(true);
    });
  });

  describe("a question", () => {
    it("is answered from the whole content, and stands with its answer above it until the file changes", async () => {
      model.onEvery("Line 90 says line 90.");
      const { windowId } = await open();
      const { said, shown } = await act(windowId, "query", "What does line 90 say?");
      expect(said).toBe(`Window ${windowId} shows lines 1 to 20 of 100. Line 90 says line 90.`);
      expect(shown && render(shown)).toContain(
        '<queryResult query="What does line 90 say?">Line 90 says line 90.</queryResult>\n  <content raw>line 1\n',
      );
      expect(model.requests[0] && userText(model.requests[0])).toContain("line 90\n");
      await write(notes, "other");
      expect((await onlyWindow()).queries).toEqual([]);
    });

    it("is paid for once, however often the operation is tried", async () => {
      model.onEvery("yes");
      const { windowId } = await open();
      await act(windowId, "query", "Well?", "the same");
      await act(windowId, "query", "Well?", "the same");
      expect(model.requests).toHaveLength(1);
    });
  });

  describe("windows that are always there", () => {
    it("cannot be closed, and the persona cannot be minimized", async () => {
      for (const windowId of ["persona", "scratchpad", "ephemeris", `room_${room.split(":")[0]}`])
        await expect(act(windowId, "close")).rejects.toThrow(/always there/);
      await expect(act("persona", "minimize")).rejects.toThrow(UserError);
    });

    it("a history scrolls into the past, and is asked about", async () => {
      for (let n = 1; n <= 120; n += 1)
        await settleEvent(database(), { roomId: room, content: { msgtype: "m.text", body: `said ${n}` } });
      const windowId = `room_${room.split(":")[0]}`;
      const { said } = await act(windowId, "goto", "20");
      expect(said).toBe(`Window ${windowId} begins with line 20 until the turn ends.`);
      const { changes } = await seen();
      const lines = (await newDesks().past.room({ ...seat(), here: room }, room.split(":")[0] ?? ""))?.lines ?? 0;
      const view = { roomId: room, isClosed: false, history: [], historyLines: lines } as never;
      const [scrolled] = await scrollHistories(newDesks().past, { ...seat(), here: room }, [view], changes);
      expect(scrolled?.history).toHaveLength(50);
      expect(scrolled?.historyBottom).toBe(69);
      model.onEvery("somebody");
      await act(windowId, "query", "Who?");
      expect((await seen()).changes.get(windowId)?.queries).toMatchObject([{ query: "Who?", answer: "somebody" }]);
    });

    it("a short history that is made smaller shows its end, and scrolls from there", async () => {
      for (let n = 1; n <= 10; n += 1)
        await settleEvent(database(), { roomId: room, content: { msgtype: "m.text", body: `said ${n}` } });
      const windowId = `room_${room.split(":")[0]}`;
      const lines = (await newDesks().past.room({ ...seat(), here: room }, room.split(":")[0] ?? ""))?.lines ?? 0;
      await act(windowId, "resize", "3");
      expect((await seen()).changes.get(windowId)).toMatchObject({ top: undefined, height: 3 });
      await act(windowId, "scroll", "-2");
      expect((await seen()).changes.get(windowId)).toMatchObject({ top: lines - 4, height: 3 });
      await act(windowId, "goto", "end");
      expect((await seen()).changes.get(windowId)).toMatchObject({ top: undefined });
    });

    it("a history that somebody here may not read is not there", async () => {
      const other = newRoom();
      for (const userId of [owner, agent.userId]) await setMember(database(), other, userId, "join");
      await setMember(database(), room, newUser(), "join");
      await expect(act(`room_${other.split(":")[0]}`, "query", "What?")).rejects.toThrow(/everybody here may read/);
    });
  });

  it("of too many windows those used longest ago are closed, but none that is pinned", async () => {
    const first = await open();
    await act(first.windowId, "pin");
    for (let n = 1; n <= windowsMax + 3; n += 1) {
      const path = `agents:/${agent.name}/${n}.txt`;
      await write(path, "text");
      await open(path);
    }
    const { windows } = await seen();
    expect(windows).toHaveLength(windowsMax);
    expect(windows.some(({ windowId }) => windowId === first.windowId)).toBe(true);
    expect(windows.some(({ src }) => src.endsWith("/1.txt"))).toBe(false);
  });

  it("guides are the system's, with what admins laid over them, and the agent's own", async () => {
    const shipped = new Map([["/guides/clevernet.md", "shipped"]]);
    const guides = new Guides(shipped, "test", none);
    const titles = async () => {
      const reading = { files: [], folders: guides.folders(agent.name) };
      const { files } = await newDesks().table.desk({ ...seat(), here: room }, reading);
      return guides.of(agent, files).map(({ title, text }) => `${title}: ${text}`);
    };
    expect(await titles()).toEqual(["Clevernet Matrix System on test: shipped"]);
    await write(`agents:/${agent.name}/guides/manners.md`, "# Manners\nBe kind.");
    expect(await titles()).toEqual(["Clevernet Matrix System on test: shipped", "Manners: # Manners\nBe kind."]);
    await write("system:/guides/clevernet.md", "changed");
    expect((await titles())[0]).toBe("Clevernet Matrix System on test: changed");
    await new Files(database()).remove("system", ["/guides/clevernet.md"], newKey());
  });

  const seat = () => ({ agent: agent.name, userId: agent.userId, owner });
});
