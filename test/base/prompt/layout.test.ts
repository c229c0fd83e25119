import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import type { Element } from "../../../src/base/lmml/element.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { visible } from "../../../src/base/lmml/visible.ts";
import { charsMin } from "../../../src/base/prompt/budget.ts";
import { layout as layoutAs } from "../../../src/base/prompt/layout.ts";
import type {
  FileView,
  RoomView,
  TimelineEntry,
  WindowChange,
  WindowView,
  World,
} from "../../../src/base/prompt/types.ts";
import { hostileText } from "../../support/hostile-text.ts";
import { anyWorld } from "./any-world.ts";
import { busyWorld, exampleWorld, message, room } from "./worlds.ts";

const layout = (world: World) => layoutAs(world, "seed");

type Outline = readonly [name: string, ...children: Outline[]];
const outline = ({ name, children }: Element): Outline =>
  typeof children === "string" ? [name] : [name, ...children.map(outline)];

const outlineOfEvents = (events: readonly TimelineEntry[]): Outline[] => events.map(({ kind }) => [kind]);
const queriesOf = (change?: Pick<WindowChange, "queries">): Outline[] =>
  (change?.queries ?? []).map((): Outline => ["queryResult"]);
const outlineOfFile = (file: FileView): Outline =>
  file.window?.state === "minimized" ? ["window"] : ["window", ...queriesOf(file.window), ["content"]];
const outlineOfWindow = ({ isClosed, state, queries, shown }: WindowView): Outline =>
  isClosed || state === "minimized"
    ? ["window"]
    : ["window", ...queriesOf({ queries }), ["content", ...(typeof shown === "string" ? [] : shown.map(outline))]];
const shownHistory = ({ history, historyWindow }: RoomView): readonly TimelineEntry[] => {
  const { state = "normal", height = 50 } = historyWindow ?? {};
  const lines = { normal: Math.min(height, history.length), maximized: history.length, minimized: 0 }[state];
  return history.slice(history.length - lines);
};
const outlineOfHistory = (room: RoomView): Outline =>
  room.historyWindow?.state === "minimized"
    ? ["window"]
    : ["window", ...queriesOf(room.historyWindow), ["content", ...outlineOfEvents(shownHistory(room))]];
const outlineOfRoom = (room: RoomView): Outline =>
  room.isClosed
    ? ["room"]
    : [
        "room",
        ...room.members.map((): Outline => ["roomMember"]),
        outlineOfHistory(room),
        ["newEvents", ...outlineOfEvents(room.newEvents)],
        ["roomFooter"],
      ];

/** Outline of the user message when nothing is cut, made from the world alone. */
const expectedOutline = (world: World): Outline => [
  "chatInterface",
  ["agentParameters"],
  [
    "chatSystem",
    ...world.systemAdmins.map((): Outline => ["systemAdmin"]),
    ...world.rooms.map(outlineOfRoom),
    [
      "room",
      ["roomMember"],
      ["window", ...world.ephemeris.map(outline)],
      ["newEvents", ["timestamp"], ...world.turn.entries.map(outline)],
      ["roomFooter"],
    ],
    ...(world.agent.scratchpad ? [outlineOfFile(world.agent.scratchpad)] : []),
  ],
  ...world.reminders.map((): Outline => ["systemReminder"]),
  ...world.todos.map((): Outline => ["todo"]),
  ...world.windows.map(outlineOfWindow),
];

const find = (name: string, within: Element): Element[] => [
  ...(within.name === name ? [within] : []),
  ...(typeof within.children === "string" ? [] : within.children.flatMap((child) => find(name, child))),
];

const userElement = (world: World): Element =>
  parse(layout({ ...world, agent: { ...world.agent, postPrompt: null } }).user);
const sane = fc.stringMatching(/^[a-z.]{1,64}$/);
const long = fc.oneof(
  hostileText,
  fc.tuple(hostileText, fc.constantFrom(1, 30, 3_000)).map(([piece, times]) => piece.repeat(times).slice(0, 65_536)),
);

describe("structure", () => {
  test("no text in any slot becomes structure, and none gets lost", () => {
    fc.assert(
      fc.property(anyWorld(hostileText, { most: 4 }), (world) => {
        const shown = userElement({ ...world, charsMax: 1_000_000 });
        expect(outline(shown)).toEqual(expectedOutline(world));
        const own = world.rooms
          .filter(({ isClosed }) => !isClosed)
          .flatMap((room) => [...shownHistory(room), ...room.newEvents]);
        expect(find("message", shown).map(({ children }) => children || [])).toEqual(
          own.flatMap((entry) => (entry.kind === "message" ? [visible(entry.body) || []] : [])),
        );
      }),
      { numRuns: 300 },
    );
  });

  test("the text after everything is the very last, as it is", () => {
    const { user } = layout(busyWorld);
    expect(user.endsWith("\n</chatInterface>\n\nThink first, then act.")).toBe(true);
  });

  test("without a text after everything the message ends with the interface", () => {
    expect(layout(exampleWorld).user.endsWith("\n</chatInterface>")).toBe(true);
  });
});

describe("walls", () => {
  test("of a closed room only its identity and the unread number are shown", () => {
    const closed = find("room", userElement(busyWorld)).find(({ attributes }) => attributes.closed);
    expect(closed).toEqual({
      name: "room",
      attributes: {
        systemId: "example.org",
        roomId: "!wall:example.org",
        roomName: "",
        loggedInAs: "@agent_helper:example.org",
        closed: true,
        unread: "7",
      },
      children: [],
    });
    const { system, user } = layout(busyWorld);
    expect(system + user).not.toContain("secret");
  });

  test("a room that is closed stays closed even as the conversation's own", () => {
    const { user } = layout({ ...busyWorld, conversation: "!wall:example.org" as RoomId });
    expect(user).not.toContain("secret");
  });
});

describe("event ids", () => {
  test("name the messages and reactions that are shown, and no others", () => {
    expect(layout(busyWorld).eventIds).toEqual(["$r", "$a", "$b", "$c", "$d"]);
  });

  test("leave out what did not fit", () => {
    const roomId = exampleWorld.conversation;
    const history = Array.from({ length: 200 }, (_, n) =>
      message(roomId, `$${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", "word ".repeat(200)),
    );
    const { user, eventIds } = layout({
      ...exampleWorld,
      rooms: [room(roomId, "General", { history })],
      charsMax: 8_000,
    });
    expect(eventIds.length).toBeGreaterThan(0);
    expect(eventIds).toEqual([...user.matchAll(/eventId="([^"]+)"/g)].map(([, id]) => id));
  });
});

describe("budget", () => {
  test("system and user message together never exceed charsMax", () => {
    fc.assert(
      fc.property(anyWorld(long, { most: 6, names: sane }), (world) => {
        const { system, user } = layout(world);
        expect(system.length + user.length).toBeLessThanOrEqual(world.charsMax);
      }),
      { numRuns: 100 },
    );
  });

  test("absurd names of server, agent or model are a mistake that is named, never an overrun", () => {
    fc.assert(
      fc.property(anyWorld(long, { most: 3 }), (world) => {
        try {
          const { system, user } = layout(world);
          expect(system.length + user.length).toBeLessThanOrEqual(world.charsMax);
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
        }
      }),
      { numRuns: 50 },
    );
  });

  test("what is cut is well-formed", () => {
    fc.assert(
      fc.property(anyWorld(long, { most: 6, names: sane }), (world) => {
        expect(userElement(world).name).toBe("chatInterface");
      }),
      { numRuns: 50 },
    );
  });

  test("a world that fits shows no sign of being cut", () => {
    const { system, user } = layout(exampleWorld);
    expect(system + user).not.toMatch(/truncated|LeftOut/);
  });

  test("a charsMax too small for the frame is a mistake with a remedy", () => {
    expect(() => layout({ ...exampleWorld, charsMax: 500 })).toThrow(/approxContextCharsMax is 500.*Raise it/);
  });

  test("one message of 64 KB is cut with a mark and takes nearly all that there is", () => {
    const { conversation: roomId } = exampleWorld;
    const newEvents = [message(roomId, "$big", "2024-12-25T15:30:00Z", "@user:matrix.org", "x".repeat(65_536))];
    const world = { ...exampleWorld, rooms: [room(roomId, "General", { newEvents })] };
    const { system, user } = layout(world);
    const [shown] = find("message", parse(user));
    expect(shown?.attributes.truncated).toBe(true);
    expect(shown?.children).toMatch(/^x{40000,}…$/);
    expect(system.length + user.length).toBeGreaterThan(world.charsMax - 500);
  });

  test("a long new event leaves the persona and the guide whole, and gives way to no history", () => {
    const [general] = exampleWorld.rooms;
    const { conversation: roomId } = exampleWorld;
    const newEvents = [message(roomId, "$big", "2024-12-25T15:30:00Z", "@user:matrix.org", "x".repeat(65_536))];
    const { system, user } = layout({
      ...exampleWorld,
      rooms: [{ ...general, ...room(roomId, "General", { newEvents, history: general?.history ?? [] }) }],
    });
    expect(system).not.toContain("truncated");
    expect(user).not.toContain("I am. What can I do?");
  });

  test("history keeps the newest, and its line numbers are those of what is shown", () => {
    const roomId = exampleWorld.conversation;
    const history = Array.from({ length: 50 }, (_, n) =>
      message(roomId, `$${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", "word ".repeat(100)),
    );
    const rooms = [room(roomId, "General", { history, historyLines: 70 })];
    const shown = userElement({ ...exampleWorld, rooms, charsMax: 12_000 });
    const [window] = find("window", shown).filter(({ attributes }) => attributes.windowId === "room_!abc123");
    const messages = window ? find("message", window) : [];
    expect(messages.length).toBeGreaterThan(2);
    expect(messages.at(-1)?.attributes.eventId).toBe("$49");
    expect(window?.attributes).toMatchObject({
      lines: "70",
      topLineNumber: String(71 - messages.length),
      bottomLineNumber: "70",
      truncated: true,
    });
  });

  test("the history window shows the last 50 lines, which is no cut", () => {
    const roomId = exampleWorld.conversation;
    const history = Array.from({ length: 80 }, (_, n) =>
      message(roomId, `$${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", "hi"),
    );
    const [window] = find("window", userElement({ ...exampleWorld, rooms: [room(roomId, "General", { history })] }));
    expect(window?.attributes).toMatchObject({ topLineNumber: "31", bottomLineNumber: "80" });
    expect(window?.attributes.truncated).toBeUndefined();
  });

  test("of many rooms every name that fits is shown, and the rest is counted", () => {
    const { conversation: roomId } = exampleWorld;
    const others = Array.from({ length: 400 }, (_, n) =>
      room(`!r${n}:matrix.org`, `Room ${n}`, { isClosed: true, unread: n }),
    );
    const shown = userElement({ ...exampleWorld, rooms: [room(roomId, "General"), ...others], roomsLeftOut: 5 });
    const [system] = find("chatSystem", shown);
    const rooms = find("room", shown).length - 1;
    expect(rooms).toBeGreaterThan(150);
    expect(system?.attributes.roomsLeftOut).toBe(String(401 - rooms + 5));
  });

  test("the least charsMax holds the frame, whatever strangers write", () => {
    const worst = fc.constant("\u{E0041}".repeat(200));
    fc.assert(
      fc.property(anyWorld(worst, { most: 2, names: fc.constant("n".repeat(64)) }), (world) => {
        const { system, user } = layout({ ...world, charsMax: charsMin });
        expect(system.length + user.length).toBeLessThanOrEqual(charsMin);
      }),
    );
  });
});

describe("home", () => {
  test("without a conversation's room every room is one of the others", () => {
    const shown = userElement({ ...exampleWorld, conversation: "" as RoomId });
    expect(outline(shown)).toEqual(expectedOutline(exampleWorld));
  });
});
