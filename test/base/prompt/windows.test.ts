import { describe, expect, test } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { thought } from "../../../src/base/prompt/ephemeris.ts";
import { layout as layoutAs } from "../../../src/base/prompt/layout.ts";
import type { RoomView, WindowView, World } from "../../../src/base/prompt/types.ts";
import { elementContent, textContent } from "../../../src/base/prompt/viewport.ts";
import { windowElement } from "../../../src/base/prompt/window.ts";
import { exampleWorld, message, room } from "./worlds.ts";

const layout = (world: World) => layoutAs(world, "seed");

const golden = (name: string) => `golden/${name}.txt`;

const windowOn = (text: string, change: Partial<WindowView> & { height?: number } = {}): WindowView => {
  const { top = 1, height = 20, ...fields } = change;
  const content = textContent(text);
  return {
    windowId: "file_456",
    srcType: "file",
    src: "agents:/docs/project-roadmap-2024.md",
    contentType: "text/markdown",
    isClosed: false,
    lines: content.lines,
    chars: content.chars,
    isRaw: true,
    state: "normal",
    isPinned: false,
    isSystem: false,
    queries: [],
    ...content.excerpt({ top, height }, 8_000),
    ...fields,
  };
};

const roadmap = `# Project Roadmap 2024\n\n## Q1 Goals\n- Launch beta version\n- Onboard 10 pilot customers\n- Complete security audit\n\n${"- and so on\n".repeat(143)}`;
const results = [
  ["agents:/docs/project-roadmap-2024.md", "1.0", "project-roadmap-2024.md"],
  ["agents:/archive/old-roadmap.md", "0.8", "old-roadmap.md"],
].map(([path, score, name = ""]) => element("searchResult", { path, score }, [element("match", { line: 1 }, name)]));
const search: WindowView = {
  ...windowOn(""),
  ...elementContent(results).excerpt({ top: 1, height: 20 }, 8_000),
  windowId: "search_123",
  srcType: "search",
  src: "agents:/",
  contentType: "text/lmml",
  lines: 2,
  chars: 37,
};
const configuration: WindowView = {
  ...windowOn(Array.from({ length: 150 }, (_, n) => (n === 25 ? "port: 8080\n" : `key${n}: value\n`)).join(""), {
    top: 20,
    height: 21,
  }),
  windowId: "123",
  src: "agents:/config.yaml",
  contentType: "text/yaml",
  closesIn: 2,
  title: "Configuration File",
  isRefreshable: true,
  queries: [{ query: "What port is configured?", answer: "Port 8080 is configured" }],
};
const guide: WindowView = {
  ...windowOn(`# Clevernet Product Requirements Document\n\n## Executive Summary\n${"...\n".repeat(470)}`),
  windowId: "123",
  src: "system:/guides/clevernet.md",
  closesIn: 2,
};
const shown = (view: WindowView) => `${render(windowElement(view) ?? element("none"))}\n`;

describe("windows as the source document shows them", () => {
  test("a search", () => expect(shown(search)).toMatchFileSnapshot(golden("window-search")));
  test("a file", () => expect(shown(windowOn(roadmap))).toMatchFileSnapshot(golden("window-file")));
  test("a file with a question, a title and the lines 20 to 40", () =>
    expect(shown(configuration)).toMatchFileSnapshot(golden("window-query")));

  test("in the chat interface they stand last, after the reminder", async () => {
    const { user } = layout({ ...exampleWorld, windows: [guide] });
    await expect(`${user.slice(user.indexOf("  <systemReminder>"))}\n`).toMatchFileSnapshot(golden("example-windows"));
  });
});

describe("a window", () => {
  test("that is minimized shows its size and nothing of its content, nor of what was asked about it", () => {
    expect(shown({ ...configuration, state: "minimized" })).toBe(
      '<window windowId="123" srcType="file" src="agents:/config.yaml" contentType="text/yaml" lines="150" chars="1988" autoCloseInTurns="2" title="Configuration File" minimized refreshable />\n',
    );
  });

  test("that is closed to somebody here shows its id and that it is closed", () => {
    expect(shown({ ...configuration, isClosed: true })).toBe(
      '<window windowId="123" srcType="" src="" contentType="" closed />\n',
    );
  });

  test("in its last turn says that it will close", () => {
    expect(shown({ ...search, closesIn: 1 })).toContain(" willAutoCloseAfterTurn>");
    expect(shown({ ...search, closesIn: 1 })).not.toContain("autoCloseInTurns");
  });

  test("on what strangers wrote is escaped and not raw", () => {
    expect(shown(windowOn("a <b> & c", { isRaw: false }))).toContain("<content>a &lt;b> &amp; c</content>");
  });

  test("on an empty file has no lines, and nothing is missing from it", () => {
    const text = shown(windowOn(""));
    expect(text).toContain('lines="0" chars="0">');
    expect(text).not.toContain("truncated");
  });

  test("that is cut to size numbers the lines that are left", () => {
    const { user } = layout({
      ...exampleWorld,
      charsMax: 5_000,
      windows: [windowOn(roadmap.repeat(3), { height: 450 })],
    });
    const [, bottom, content = ""] =
      /bottomLineNumber="(\d+)"[^>]* truncated>\s*<content raw>(.*?)<\/content>/s.exec(
        user.slice(user.indexOf("file_456")),
      ) ?? [];
    expect(content.split("\n")).toHaveLength(Number(bottom));
    expect(Number(bottom)).toBeGreaterThan(5);
    expect(Number(bottom)).toBeLessThan(400);
  });
});

describe("of many windows", () => {
  const many = Array.from({ length: 20 }, (_, n) => ({ ...windowOn(roadmap, { height: 100 }), windowId: `file_${n}` }));

  test("those that do not fit are counted, and those used last are shown", () => {
    const { user } = layout({ ...exampleWorld, charsMax: 5_500, windows: many });
    const ids = [...user.matchAll(/windowId="file_(\d+)"/g)].map(([, id]) => Number(id));
    const [, leftOut] = /windowsLeftOut="(\d+)"/.exec(user) ?? [];
    expect(ids.length).toBeGreaterThan(0);
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, n) => 20 - ids.length + n));
    expect(Number(leftOut)).toBe(20 - ids.length);
  });

  test("one that is maximized gets more than the others", () => {
    const [first, ...others] = many;
    const windows = [{ ...first, state: "maximized" } as WindowView, ...others.slice(0, 5)];
    const { user } = layout({ ...exampleWorld, charsMax: 9_000, windows });
    const bottoms = [...user.matchAll(/windowId="file_\d+".*?bottomLineNumber="(\d+)"/g)].map(([, line]) =>
      Number(line),
    );
    expect(bottoms).toHaveLength(6);
    expect(bottoms[0]).toBeGreaterThan(2 * Math.max(...bottoms.slice(1)));
  });
});

describe("rooms beside the conversation's own", () => {
  const talk = (id: string, unread: number): RoomView =>
    room(`!${id}:matrix.org`, id, {
      history: Array.from({ length: 40 }, (_, n) =>
        message(`!${id}:matrix.org`, `$${id}${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", "word ".repeat(30)),
      ),
      unread,
    });

  test("one that speaks gets more of the budget than silent ones", () => {
    const [own] = exampleWorld.rooms;
    const rooms = [...(own ? [own] : []), talk("silent", 0), talk("loud", 10)];
    const world: World = { ...exampleWorld, rooms, charsMax: 12_000 };
    const { user } = layout(world);
    const count = (id: string) => user.split(`eventId="$${id}`).length - 1;
    expect(count("loud")).toBeGreaterThan(2 * count("silent"));
    expect(count("silent")).toBeGreaterThan(0);
  });
});

describe("a history that was scrolled", () => {
  test("numbers its lines from the beginning of the history", () => {
    const roomId = exampleWorld.conversation;
    const history = [5, 6, 7].map((n) =>
      message(roomId, `$${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", `said ${n}`),
    );
    const view = room(roomId as RoomId, "General", {
      history,
      historyLines: 100,
      historyBottom: 7,
      historyWindow: { state: "normal", queries: [{ query: "Who?", answer: "Nobody." }], top: 5, height: 3 },
    });
    const { user } = layout({ ...exampleWorld, rooms: [view] });
    expect(user).toContain('lines="100" chars="18" topLineNumber="5" bottomLineNumber="7" pinned system>');
    expect(user).toMatch(/<queryResult query="Who\?">Nobody\.<\/queryResult>\s+<content>\s+<message[^>]*>said 5</);
  });

  test("is one line as long as it is minimized", () => {
    const roomId = exampleWorld.conversation;
    const history = [message(roomId, "$1", "2024-12-25T15:00:00Z", "@user:matrix.org", "said")];
    const view = room(roomId as RoomId, "General", { history, historyWindow: { state: "minimized", queries: [] } });
    const { user } = layout({ ...exampleWorld, rooms: [view] });
    expect(user).toMatch(/windowId="room_!abc123"[^>]* pinned minimized system[^>]*\/>/);
    expect(user).not.toContain("said");
  });
});

test("the window of the ephemeris tells how many entries there are in all, and which of them it shows", () => {
  const ephemeris = Array.from({ length: 3 }, () => thought(new Date(0), "a thought"));
  const windowOf = (world: Partial<World>) =>
    /<window windowId="ephemeris"[^>]*>/.exec(layout({ ...exampleWorld, ephemeris, ...world }).user)?.[0];
  expect(windowOf({})).toContain('lines="3" chars="27" pinned system>');
  expect(windowOf({ ephemerisLines: 3 })).toContain('lines="3" chars="27" pinned system>');
  expect(windowOf({ ephemerisLines: 120 })).toContain(
    'lines="120" topLineNumber="118" bottomLineNumber="120" pinned system truncated>',
  );
});
