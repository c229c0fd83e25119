import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { visible } from "../../../src/base/lmml/visible.ts";
import { thought } from "../../../src/base/prompt/ephemeris.ts";
import { layout } from "../../../src/base/prompt/layout.ts";
import { leanEntry } from "../../../src/base/prompt/lean.ts";
import type { LogEntry, LogView, TimelineEntry, World } from "../../../src/base/prompt/types.ts";
import { Told, updateOf } from "../../../src/base/prompt/update.ts";
import { readPrompt } from "../../../src/edges/demo/rehearsal-view.ts";
import { all, textOf } from "../../support/elements.ts";
import { hostileText } from "../../support/hostile-text.ts";
import { anyWorld } from "./any-world.ts";
import { busyWorld, exampleWorld, message, room } from "./worlds.ts";

const shown = (world: World) => {
  const prompt = layout(world, "cacheable");
  return { ...prompt, elements: readPrompt([{ role: "user", content: prompt.user }]) };
};
const sane = fc.string({ minLength: 1, maxLength: 64, unit: fc.constantFrom(..."abcxyz") });
const long = fc.oneof(hostileText, fc.string({ maxLength: 3_000 }));

const here = exampleWorld.conversation;
const said = (n: number) => message(here, `$${n}`, "2024-12-25T15:00:00Z", "@user:matrix.org", `message ${n}`);
const inLog = (entry: TimelineEntry): LogEntry => leanEntry(entry, exampleWorld.agent.userId);
const logOf = (...entries: readonly LogEntry[]): LogView => ({ entries, leftOut: new Set() });
const saidLog = (...numbers: readonly number[]): LogView => logOf(...numbers.map((n) => inLog(said(n))));

describe("the order", () => {
  test("is guides, prompt and persona in the system message", () => {
    const { system } = shown(exampleWorld);
    const places = ["<agentGuide", "You are one of the agents", '<window windowId="persona"'].map((text) =>
      system.indexOf(text),
    );
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
  });

  test("is rooms with members, then the log, then what is different each time", () => {
    const { elements } = shown({ ...exampleWorld, log: saidLog(1, 2) });
    expect(elements.map(({ name }) => name)).toEqual(["chatSystem", "log", "chatInterface"]);
    expect(all(elements[0], "roomMember").length).toBeGreaterThan(0);
    expect(all(elements[2], "roomMember")).toEqual([]);
  });

  test("puts its borders before the log and behind it", () => {
    const { user, borders } = shown({ ...exampleWorld, log: saidLog(1, 2) });
    const [first = 0, second = 0] = borders;
    expect(user.slice(first).startsWith("<log>\n<room")).toBe(true);
    expect(user.slice(second).startsWith("\n</log>\n\n<chatInterface")).toBe(true);
  });

  test("is the same up to the end of the log when events are added and time passes", () => {
    const before = shown({ ...exampleWorld, log: saidLog(1, 2) });
    const after = shown({
      ...exampleWorld,
      now: new Date(exampleWorld.now.getTime() + 3_600_000),
      log: saidLog(1, 2, 3),
    });
    const end = before.borders[1] ?? 0;
    expect(end).toBeGreaterThan(0);
    expect(after.system).toBe(before.system);
    expect(after.user.slice(0, end)).toBe(before.user.slice(0, end));
  });
});

describe("what is shown", () => {
  test("todos stand in the tail: what is to be done changes nothing before it", () => {
    const world = { ...exampleWorld, log: saidLog(1) };
    const [before, after] = [shown(world), shown({ ...world, todos: [{ number: 1, name: "Look", isDone: false }] })];
    const end = before.borders[1] ?? 0;
    expect(after.user.slice(0, end)).toBe(before.user.slice(0, end));
    expect(after.user.slice(end)).toContain('<todo id="1">Look</todo>');
  });

  test("what was thought before stands in the log, and the running turn in the tail", () => {
    const log = logOf({ source: "ephemeris", at: new Date(0), element: thought(new Date(0), "I see") });
    const { elements } = shown({ ...exampleWorld, log, ephemeris: [] });
    const [lines] = elements.filter(({ name }) => name === "log");
    expect(all(lines, "thought").map(textOf)).toEqual(["I see"]);
    expect(all(elements.at(-1), "timestamp")).toHaveLength(1);
  });

  test("of a closed room only that it is there, and the unread number", () => {
    const { system, user } = shown(busyWorld);
    expect(user).toContain("!wall:example.org");
    expect(system + user).not.toContain("secret");
  });

  test("no text in the log becomes structure, and none gets lost", () => {
    fc.assert(
      fc.property(fc.array(hostileText, { minLength: 1, maxLength: 5 }), (texts) => {
        const entries = texts.map((body, n) => inLog({ ...said(n), kind: "message", body } as TimelineEntry));
        const { elements } = shown({ ...exampleWorld, charsMax: 1_000_000, log: logOf(...entries) });
        const [lines] = elements.filter(({ name }) => name === "log");
        expect(all(lines, "message").map(textOf)).toEqual(texts.map(visible));
      }),
      { numRuns: 300 },
    );
  });

  test("events in the log and in the new events are named, so that a redaction finds the render", () => {
    const world = { ...exampleWorld, log: saidLog(1), rooms: [room(here, "General", { newEvents: [said(2)] })] };
    expect(shown(world).eventIds).toEqual(["$1", "$2"]);
  });
});

describe("the budget", () => {
  test("system and user message together leave a part of charsMax to the steps that follow", () => {
    fc.assert(
      fc.property(anyWorld(long, { most: 4, names: sane }), (world) => {
        const charsMax = Math.max(world.charsMax, 10_000);
        const { system, user } = layout({ ...world, charsMax }, "cacheable");
        expect(system.length + user.length).toBeLessThanOrEqual(charsMax * 0.85);
      }),
      { numRuns: 60 },
    );
  });

  test("a log that is too long for a small context loses its oldest pieces", () => {
    const log = saidLog(...Array.from({ length: 300 }, (_, n) => n));
    const { elements, user } = shown({ ...exampleWorld, charsMax: 12_000, log });
    const ids = elements
      .filter(({ name }) => name === "log")
      .flatMap((lines) => all(lines, "message").map(({ attributes }) => attributes.id));
    expect(user).toContain(`<log truncated>\n<room roomId="${here}" truncated />`);
    expect(ids.length).toBeGreaterThan(50);
    expect(ids.length).toBeLessThan(300);
    expect(ids.at(-1)).toBe("$299");
  });

  test("what is kept for the steps that follow is given to a new event that would be cut", () => {
    const guides = [{ title: "Guide", text: "g".repeat(9_000) }];
    const newEvents = [message(here, "$new", "2024-12-25T15:00:00Z", "@user:matrix.org", "y".repeat(3_500))];
    const world = { ...exampleWorld, guides, rooms: [room(here, "General", { newEvents })], charsMax: 8_000 };
    const { system, user, waiting } = layout(world, "cacheable");
    expect(user).toContain("y".repeat(3_500));
    expect(system.length + user.length).toBeLessThanOrEqual(8_000);
    expect(waiting).toEqual([]);
  });

  test("a charsMax too small for the frame is a mistake with a remedy", () => {
    expect(() => shown({ ...exampleWorld, charsMax: 500 })).toThrow(/approxContextCharsMax is 500.*Raise it/);
  });
});

describe("an update", () => {
  const world = (change: Partial<World>): World => ({ ...exampleWorld, windows: [], reminders: ["speak"], ...change });
  const withNews = (...ids: readonly number[]): World =>
    world({ rooms: [room(here as RoomId, "General", { newEvents: ids.map(said) })] });

  test("is none where nothing has changed but the time", () => {
    const told = new Told();
    told.take(withNews(1));
    expect(updateOf({ ...withNews(1), now: new Date(0) }, told)).toBeUndefined();
  });

  test("tells the events that came meanwhile, once", () => {
    const told = new Told();
    told.take(withNews(1));
    const update = updateOf(withNews(1, 2), told);
    expect(update?.eventIds).toEqual(["$2" as EventId]);
    expect(update?.text).toContain("message 2");
    expect(update?.text).not.toContain("message 1");
    expect(updateOf(withNews(1, 2), told)).toBeUndefined();
  });

  test("tells each event whole: where that does not fit behind what was sent, there is a new render", () => {
    const told = new Told();
    told.take(withNews(1));
    const long = message(here, "$long", "2024-12-25T15:00:00Z", "@user:matrix.org", "y".repeat(3_000));
    const newEvents = [...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(said), long];
    const small = { ...world({ rooms: [room(here, "General", { newEvents })] }), charsMax: 8_000 };
    const update = updateOf(small, told);
    expect(update?.text).not.toMatch(/truncated|eventsLeftOut/);
    expect(update?.eventIds).toHaveLength(9);
  });

  test("shows the persona and the scratchpad where they are not as they were", () => {
    const told = new Told();
    const agent = {
      ...exampleWorld.agent,
      scratchpad: { path: "a:/s.md", contentType: "text/markdown", text: "old\n" },
    };
    told.take(world({ agent }));
    const written = world({ agent: { ...agent, scratchpad: { ...agent.scratchpad, text: "new\n" } } });
    const update = updateOf(written, told);
    expect(update?.text).toContain("new\n");
    expect(update?.text).not.toContain('windowId="persona"');
    expect(updateOf(written, told)).toBeUndefined();
    const persona = { path: "a:/p.md", contentType: "text/markdown", text: "one\ntwo\nthree\n" };
    told.take(world({ agent: { ...written.agent, persona } }));
    const change = { state: "normal", top: 2, height: 1, queries: [] } as const;
    const scrolled = updateOf(world({ agent: { ...written.agent, persona: { ...persona, window: change } } }), told);
    expect(scrolled?.text).toContain(">two\n<");
  });

  test("tells a new reminder, and no old one", () => {
    const told = new Told();
    told.take(world({}));
    const update = updateOf(world({ reminders: ["speak", "nobody heard you"] }), told);
    expect(update?.text).toContain("nobody heard you");
    expect(update?.text).not.toContain(">speak<");
  });
});
