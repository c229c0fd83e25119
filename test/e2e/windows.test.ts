import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Element } from "../../src/base/lmml/element.ts";
import { all } from "../support/elements.ts";
import { type ModelRequest, type Step, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf, chatInterface } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const lines = Array.from({ length: 100 }, (_, n) => `line ${n + 1}`).join("\n");

/** Windows as they were shown last in a request, by their ids. */
const windowsIn = (request: ModelRequest): Map<string, Element> =>
  new Map(all(chatInterface(request), "window").map((window) => [String(window.attributes.windowId), window]));
/** Those that lie open, without those that are always there. */
const opened = (request: ModelRequest): Element[] =>
  [...windowsIn(request).values()].filter(({ attributes }) => attributes.system !== true);
const shows = (text: string) => (request: ModelRequest) => JSON.stringify(request.body.messages).includes(text);
const onlyWindow = (request: ModelRequest): Element => {
  const [window, another] = opened(request);
  if (!window || another) throw new Error(`${opened(request).length} windows are open`);
  return window;
};
const contentOf = (window: Element): string => {
  const [content] = all(window, "content");
  return typeof content?.children === "string" ? content.children : "";
};

describe("windows", () => {
  let stage: Stage;
  let admin: TestUser;
  let room: string;
  let file: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres" });
    await stage.bridge.start();
    admin = await stage.user("admin");
    room = await stage.directRoom(admin);
    file = "agents:/helper/plans/notes.txt";
    expect(await command(`!write ${file} ${lines}`)).toContain("was written");
  });
  afterAll(() => stage.strike());

  const command = async (line: string): Promise<string> => {
    const id = await admin.say(room, line);
    const isReply = ({ content }: Message) => content["org.clevernet.command"] === id;
    return (await admin.waitForMessage(room, isReply)).body;
  };
  let asked = 0;
  /**
   * A turn in which the agent calls `tool` once, or nothing, and then answers.
   * @returns the last request, in which it sees what came of it
   */
  const turn = async (tool?: string, input: object = {}): Promise<ModelRequest> => {
    const question = `question ${++asked}.`;
    stage.model.on(question, (request): Step => {
      const isDone = tool === undefined || callsOf(request).length > 0;
      return isDone ? answer(request, `answer ${question}`) : { call: toolName(request, tool), arguments: input };
    });
    await admin.say(room, question);
    await admin.waitForMessage(room, ({ body }) => body === `answer ${question}`);
    const last = stage.model.requests.findLast(shows(question));
    if (!last) throw new Error("no request");
    return last;
  };
  let windowId: string;

  it("a file that is opened stands in a window, 20 lines of it, for two turns", async () => {
    const request = await turn("FS_OpenFile", { path: file });
    const window = onlyWindow(request);
    windowId = String(window.attributes.windowId);
    expect(window.attributes).toMatchObject({
      srcType: "file",
      src: file,
      contentType: "text/plain",
      lines: "100",
      topLineNumber: "1",
      bottomLineNumber: "20",
      autoCloseInTurns: "2",
      autorefresh: true,
    });
    expect(contentOf(window)).toBe(`${lines.split("\n").slice(0, 20).join("\n")}\n`);
    expect(callsOf(request)[0]?.result).toContain(`Window opened with ID ${windowId}`);
  });

  it("it is scrolled in the next turn", async () => {
    const window = onlyWindow(await turn("Window_Action", { windowId, action: "scroll" }));
    expect(window.attributes).toMatchObject({ windowId, topLineNumber: "21", bottomLineNumber: "40" });
    expect(contentOf(window)).toMatch(/^line 21\n/);
  });

  it("a question about it is answered above its content by another call of a model", async () => {
    const asks = (request: ModelRequest) =>
      request.body.messages[0]?.content.startsWith("You answer one question") ?? false;
    stage.model.on(asks, "Line 99 says line 99.");
    const window = onlyWindow(
      await turn("Window_Action", { windowId, action: "query", argument: "What says line 99?" }),
    );
    const [answered] = all(window, "queryResult");
    expect(answered).toMatchObject({
      attributes: { query: "What says line 99?" },
      children: "Line 99 says line 99.",
    });
    const request = stage.model.requests.find(asks);
    expect(request && userText(request)).toContain("line 99");
  });

  it("a kill -9 in the middle of a turn changes nothing in it, and the turn counts once", async () => {
    const hung = "are you there?";
    stage.model.on(hung, { hangs: true }, { times: 1 });
    await admin.say(room, hung);
    const first = await stage.model.request(hung);
    expect(onlyWindow(first).attributes).toMatchObject({ windowId, willAutoCloseAfterTurn: true, topLineNumber: "21" });
    await stage.bridge.kill();
    stage.model.on(hung, (request) => answer(request, "I am"));
    await stage.bridge.start();
    await admin.waitForMessage(room, ({ body }) => body === "I am");
    const again = stage.model.requests.findLast(shows(hung));
    expect(again && onlyWindow(again)).toEqual(onlyWindow(first));
  });

  it("after its last turn it is closed", async () => {
    expect(opened(await turn())).toEqual([]);
  });

  it("people open, scroll and close windows by commands, and are shown them", async () => {
    const shown = await command(`!open ${file}`);
    const [, id = ""] = /windowId="(\w+)"/.exec(shown) ?? [];
    expect(shown).toContain("line 20");
    expect(await command(`!window ${id} goto 50`)).toContain("line 50\nline 51");
    expect(await command(`!window ${id} close`)).toContain("is closed");
    expect(await command("!window persona close")).toContain("always there");
    expect(await command(`!window ${id} fold`)).toContain("!window <windowId> <action> [argument]");
  });

  it("a search is a window of its results", async () => {
    const window = onlyWindow(
      await turn("FS_Search", { path: "agents:/helper", query: "notes", searchMode: "filename" }),
    );
    expect(window.attributes).toMatchObject({
      srcType: "search",
      src: "agents:/helper",
      query: "notes",
      refreshable: true,
    });
    const [result] = all(window, "searchResult");
    expect(result?.attributes.path).toBe(file);
  });

  it("a history is scrolled into the past until the turn ends", async () => {
    const history = `room_${room.split(":")[0]}`;
    const question = "go back.";
    stage.model.on(question, (request): Step => {
      const [action, argument] =
        [
          ["resize", "3"],
          ["scroll", "-2"],
        ][callsOf(request).length] ?? [];
      if (action === undefined) return answer(request, "went back");
      return { call: toolName(request, "Window_Action"), arguments: { windowId: history, action, argument } };
    });
    await admin.say(room, question);
    await admin.waitForMessage(room, ({ body }) => body === "went back");
    const last = stage.model.requests.findLast(shows(question));
    const back = last && windowsIn(last).get(history);
    expect(all(back, "content").map(({ children }) => children.length)).toEqual([3]);
    const [top, bottom] = [Number(back?.attributes.topLineNumber), Number(back?.attributes.bottomLineNumber)];
    expect([top, bottom]).not.toContain(Number.NaN);
    expect(bottom).toBeLessThan(Number(back?.attributes.lines));
    expect(windowsIn(await turn()).get(history)?.attributes.bottomLineNumber ?? "none").not.toBe(String(bottom));
  });

  it("a guide that is written is shown from the next turn on", async () => {
    await command("!write agents:/helper/guides/tea.md # Tea\nAlways offer tea.");
    const request = await turn();
    expect(request.body.messages[0]?.content).toContain(
      '<agentGuide title="Tea"># Tea\nAlways offer tea.</agentGuide>',
    );
  });

  it("a window is closed to a stranger who comes into the room", async () => {
    await command(`!open ${file}`);
    const ben = await stage.user("ben");
    await admin.invite(room, ben.id);
    await ben.join(room);
    await admin.waitForMembership(room, "join", ben.id);
    stage.model.on("what is open?", (request) => answer(request, "seen"));
    await admin.mention(room, stage.agentId(), "what is open?");
    await admin.waitForMessage(room, ({ body }) => body === "seen");
    const request = stage.model.requests.findLast(shows("what is open?"));
    const windows = request ? opened(request) : [];
    expect(windows.length).toBeGreaterThan(0);
    for (const { attributes, children } of windows) {
      expect(attributes).toMatchObject({ closed: true, src: "", srcType: "", contentType: "" });
      expect(children).toEqual([]);
    }
  });

  it("everything was said once", () => stage.check());
});
