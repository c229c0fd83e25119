import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { logLimitOf } from "../../../src/base/prompt/cacheable.ts";
import { thought } from "../../../src/base/prompt/ephemeris.ts";
import { layout } from "../../../src/base/prompt/layout.ts";
import { leanEntry } from "../../../src/base/prompt/lean.ts";
import type { LogEntry, TimelineEntry, World } from "../../../src/base/prompt/types.ts";
import type { LogState } from "../../../src/domain/tables/steps.ts";
import { readPrompt } from "../../../src/edges/demo/rehearsal-view.ts";
import { advance, emptyLog, type LogItem } from "../../../src/engine/sight/log.ts";
import { exampleWorld, message, room } from "../../base/prompt/worlds.ts";
import { all, textOf } from "../../support/elements.ts";

const exchanges = 500;
const places = Array.from({ length: 12 }, (_, n) => `!room${n}abcdefghijklm:chat.example.org` as RoomId);
const words = "we could look at the plan, ask <those> who were there & write down what it costs; ";
const guide = readFileSync(new URL("../../../src/app/shipped/guides/clevernet.md", import.meta.url), "utf8");
const [ann, self] = ["@ann:chat.example.org", "@agent_helper:chat.example.org"] as UserId[];
const most = 1_000;

interface Call {
  readonly place: RoomId;
  readonly body: string;
  readonly system: string;
  readonly chars: number;
  readonly log: string;
  /** Part of the prompt behind the log. */
  readonly tail: string;
}

/** Ann and the agent talk: two of three messages in one room, the others in eleven more. */
const converse = (charsMax: number): Call[] => {
  const known = conversations.get(charsMax) ?? conversation(charsMax);
  conversations.set(charsMax, known);
  return known;
};
const conversations = new Map<number, Call[]>();

function conversation(charsMax: number): Call[] {
  const states = new Map<RoomId, LogState>();
  const items: (LogItem & { readonly event?: TimelineEntry })[] = [];
  const add = (entry: LogEntry, event?: TimelineEntry) => {
    const arrivedAt = new Date(items.length * 1_000);
    items.push({ position: items.length + 1, arrivedAt, entry, ...(event && { event }) });
  };
  const say = (place: RoomId, sender: string, body: string) => {
    const id = `$${String(items.length).padStart(43, "e")}`;
    const entry = message(place, id, "2026-01-01T12:00:00Z", sender, body);
    add(leanEntry(entry, self as UserId), entry);
  };
  return Array.from({ length: exchanges }, (_, n): Call => {
    const place = places[n % 3 === 0 ? (n / 3) % places.length : 0] as RoomId;
    const body = `question ${n}: ${words.repeat(n % 3)}`;
    say(place, ann as string, body);
    const question = items.at(-1);
    // Ten rooms are shown, the conversation's own first.
    const open = [place, ...places.filter((other) => other !== place)].slice(0, 10);
    const members = [self, ann].map((userId) => ({ userId: userId as UserId, isAdmin: false, isYou: userId === self }));
    const world: World = {
      ...exampleWorld,
      charsMax,
      guides: [{ title: "Clevernet", text: guide }],
      ephemeris: [],
      conversation: place,
      rooms: open.map((roomId) => {
        const newEvents = roomId === place && question?.event ? [question.event] : [];
        return room(roomId, "A room", { members, historyLines: 500, historyChars: 50_000, newEvents });
      }),
    };
    const state = states.get(place) ?? emptyLog;
    const sources = [...open, "ephemeris" as const].map((source) => {
      const all = items.filter((item) => item.entry.source === source && item.position > (state.from[source] ?? 0));
      return { source, read: all.slice(-most).filter((item) => item !== question) };
    });
    const known = sources.flatMap(({ read }) => read);
    const full = new Set(sources.filter(({ read }) => read.length === most).map(({ source }) => source));
    const logging = { here: place, charsMax, timeZone: world.timeZone, max: logLimitOf(world), full };
    const { log, next } = advance(state, known, logging);
    states.set(place, next);
    const { system, user, borders } = layout({ ...world, log }, "cacheable");
    add({ source: "ephemeris", at: undefined, element: thought(new Date(n * 1_000), "They ask, and I answer.") });
    say(place, self as string, `answer ${n}: ${words.repeat(n % 4)}`);
    const chars = system.length + user.length;
    return { place, body, system, chars, log: user.slice(borders[0], borders[1]), tail: user.slice(borders[1]) };
  });
}

test.each([8_000, 50_000, 200_000])("in 500 exchanges an agent of %d characters sees each new message", (charsMax) => {
  const calls = converse(charsMax);
  for (const { place, body, tail } of calls) {
    const own = readPrompt([{ role: "user", content: tail }])
      .flatMap((root) => all(root, "room"))
      .filter(({ attributes }) => attributes.roomId === place)
      .flatMap((shown) => all(shown, "newEvents"));
    expect(own.flatMap((shown) => all(shown, "message")).map(textOf)).toEqual([body]);
    expect(own.map(({ attributes }) => attributes.eventsLeftOut)).toEqual([undefined]);
  }
  expect(new Set(calls.map(({ system }) => system)).size).toBe(1);
  expect(/ truncated[ >]/.test(calls[0]?.system ?? "")).toBe(charsMax === 8_000);
  for (const { chars } of calls) expect(chars).toBeLessThanOrEqual(charsMax * 0.85);
});

test.each([50_000, 200_000])(
  "half of a log of %d characters is cut at once: then it only grows, for a while",
  (charsMax) => {
    const logs = converse(charsMax)
      .filter(({ place }) => place === places[0])
      .map(({ log }) => log);
    const cuts = logs.flatMap((log, index) => (log.startsWith(logs[index - 1] ?? "") ? [] : [index]));
    expect(cuts.length).toBeGreaterThan(1);
    expect(cuts.length).toBeLessThan(logs.length / 6);
    for (const cut of cuts) {
      const kept = (logs[cut]?.length ?? 0) / (logs[cut - 1]?.length ?? 1);
      expect(kept).toBeGreaterThan(0.4);
      expect(kept).toBeLessThan(0.75);
    }
  },
);

test("a new message that takes all there is leaves the log out of that one render, and not of the next", () => {
  const roomId = places[0] as RoomId;
  const events = Array.from({ length: 60 }, (_, n) =>
    message(roomId, `$${n}`, "2026-01-01T12:00:00Z", ann as string, words),
  );
  const see = (state: LogState, known: readonly TimelineEntry[]) => {
    const newEvents = known.slice(-1);
    const world = { ...exampleWorld, conversation: roomId, rooms: [room(roomId, "A room", { newEvents })] };
    const items = known.flatMap((event, position): LogItem[] =>
      newEvents.includes(event)
        ? []
        : [{ position, arrivedAt: new Date(position), entry: leanEntry(event, world.agent.userId) }],
    );
    const logging = {
      here: roomId,
      charsMax: 50_000,
      timeZone: "UTC",
      max: logLimitOf(world),
      full: new Set<RoomId>(),
    };
    const { log, next } = advance(state, items, logging);
    const { user, borders } = layout({ ...world, log }, "cacheable");
    return { next, log: user.slice(borders[0], borders[1]) };
  };
  const long = message(roomId, "$long", "2026-01-01T12:00:00Z", ann as string, "y".repeat(65_000));
  const before = see(emptyLog, events);
  const then = see(before.next, [...events, long]);
  const after = see(then.next, [
    ...events,
    long,
    message(roomId, "$after", "2026-01-01T12:00:00Z", ann as string, "so?"),
  ]);
  expect(before.log.length).toBeGreaterThan(7_000);
  expect(then.log).toBe("<log truncated>");
  expect(after.log.startsWith(before.log)).toBe(true);
});
