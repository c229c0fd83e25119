import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { Element } from "../../../src/base/lmml/element.ts";
import { visible } from "../../../src/base/lmml/visible.ts";
import { type LayoutName, layout } from "../../../src/base/prompt/layout.ts";
import type { World } from "../../../src/base/prompt/types.ts";
import { readPrompt } from "../../../src/edges/demo/rehearsal-view.ts";
import { all, textOf } from "../../support/elements.ts";
import { hostileText } from "../../support/hostile-text.ts";
import { logWindows } from "../../support/sight.ts";
import { anyWorld } from "./any-world.ts";
import { message } from "./worlds.ts";

const here = "!here:example.org" as RoomId;
const sane = fc.stringMatching(/^[a-z.]{1,64}$/);
const long = fc.oneof(
  hostileText,
  fc.tuple(hostileText, fc.constantFrom(1, 30, 3_000)).map(([piece, times]) => piece.repeat(times).slice(0, 65_536)),
);

/** Worlds full of anything, at the sizes that people choose, whose new events and definition of the agent are short. */
const crowded = fc
  .record({
    world: anyWorld(long, { most: 6, names: sane }),
    charsMax: fc.constantFrom(8_000, 50_000, 200_000),
    bodies: fc.array(hostileText, { minLength: 1, maxLength: 4 }),
    defining: fc.record({ systemPrompt: hostileText, persona: hostileText, guide: hostileText, reminder: hostileText }),
  })
  .map(({ world, charsMax, bodies, defining }): World => {
    const members = Array.from({ length: 20 }, (_, n) => ({
      userId: `@u${n}:test` as UserId,
      isAdmin: false,
      isYou: false,
    }));
    const newEvents = bodies.map((body, n) => message(here, `$new${n}`, "2026-01-01T00:00:00Z", "@ann:test", body));
    const [own, ...others] = world.rooms;
    const room = {
      ...own,
      roomId: here,
      name: "Here",
      isDirect: false,
      isClosed: false,
      members,
      memberCount: 20,
      newEvents,
    };
    return {
      ...world,
      charsMax,
      conversation: here,
      rooms: [
        { history: [], historyLines: 0, historyChars: 0, ...room, unread: newEvents.length },
        ...others.filter(({ roomId }) => roomId !== here),
      ],
      systemAdmins: [],
      reminders: [defining.reminder],
      guides: [{ title: "Guide", text: defining.guide }],
      agent: {
        ...world.agent,
        systemPrompt: defining.systemPrompt,
        postPrompt: null,
        persona: { path: "agents:/a/persona.md", contentType: "text/markdown", text: defining.persona },
      },
    };
  });

const shown = (world: World, name: LayoutName) => {
  const { system, user } = layout(world, name);
  const roots = readPrompt([{ role: "user", content: user }]);
  const rooms = roots
    .flatMap((root) => all(root, "room"))
    .filter(({ attributes }) => attributes.roomId === world.conversation);
  return {
    system,
    user,
    rooms,
    log: roots.filter((root) => root.name === "log").flatMap(childrenOf),
    newEvents: rooms.flatMap((room) => all(room, "newEvents")),
    /** Entries of the log, of histories and of the ephemeris. */
    past: roots
      .flatMap((root) =>
        root.name === "log" ? logWindows(root) : all(root, "room").flatMap((room) => all(room, "window")),
      )
      .filter(({ attributes }) => attributes.srcType === "chatHistory")
      .flatMap((window) => ["message", "roomEvent", "thought", "functionCall"].flatMap((entry) => all(window, entry))),
    reminders: roots.flatMap((root) => all(root, "systemReminder")),
  };
};

/** The system message without the working files, which stand behind it in the layout `seed`. */
const definitionIn = (system: string): string => system.split("=== CURRENT MENTAL STATE")[0] ?? "";

const childrenOf = ({ children }: Element): readonly Element[] => (typeof children === "string" ? [] : children);
const isWhole = (element: Element): boolean => element.attributes.truncated === undefined;

describe.each(["cacheable", "seed"] as const)("in the layout %s", (name) => {
  test("new events, reminders, members and what defines the agent are whole, whatever else there is", () => {
    fc.assert(
      fc.property(crowded, (world) => {
        const { system, rooms, newEvents, reminders } = shown(world, name);
        expect(definitionIn(system)).not.toMatch(/ truncated|\[truncated\]/);
        const bodies = newEvents.flatMap((events) => all(events, "message")).map(textOf);
        const expected = world.rooms[0]?.newEvents.map((event) =>
          event.kind === "message" ? visible(event.body) : "",
        );
        expect(bodies).toEqual(expected);
        expect(newEvents.every(({ attributes }) => attributes.eventsLeftOut === undefined)).toBe(true);
        expect(reminders.map(textOf)).toEqual(world.reminders.map(visible));
        expect(reminders.every(isWhole)).toBe(true);
        expect(rooms.flatMap((room) => all(room, "roomMember"))).toHaveLength(20);
      }),
      { numRuns: 25 },
    );
  });

  test("where a new event or a reminder is cut or left out, nothing is shown of what happened before", () => {
    fc.assert(
      fc.property(anyWorld(long, { most: 6, names: sane }), (world) => {
        const { newEvents, reminders, past } = shown({ ...world, charsMax: Math.max(world.charsMax, 8_000) }, name);
        const isLeftOut = newEvents.some(({ attributes }) => attributes.eventsLeftOut !== undefined);
        const areAllWhole = [...newEvents.flatMap(childrenOf), ...reminders].every(isWhole);
        const unread = world.rooms[0]?.unread ?? 0;
        if (!areAllWhole || (isLeftOut && unread === world.rooms[0]?.newEvents.length)) expect(past).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });

  test("the system message is the same, whatever else there is", () => {
    const anyPair = fc.tuple(crowded, crowded).filter(([{ charsMax }]) => charsMax >= 50_000);
    fc.assert(
      fc.property(anyPair, fc.nat(60_000), ([world, other], length) => {
        const agent = { ...world.agent, systemPrompt: "word ".repeat(length / 5) };
        const changed = {
          ...other,
          serverName: world.serverName,
          charsMax: world.charsMax,
          guides: world.guides,
          agent,
        };
        const [one, two] = [changed, { ...world, agent }].map((each) => definitionIn(layout(each, name).system));
        expect(one?.trimEnd()).toBe(two?.trimEnd());
      }),
      { numRuns: 15 },
    );
  });
});

test("a log has no place beside a new event that is too long for all that there is", () => {
  fc.assert(
    fc.property(crowded, (world) => {
      const event = message(here, "$long", "2026-01-01T00:00:00Z", "@ann:test", "x".repeat(300_000));
      const [room, ...others] = world.rooms;
      if (!room) throw new Error("no room");
      const { log, newEvents } = shown({ ...world, rooms: [{ ...room, newEvents: [event] }, ...others] }, "cacheable");
      expect(log).toEqual([]);
      expect(all(newEvents[0], "message").map(({ attributes }) => attributes.id as EventId)).toEqual(["$long"]);
    }),
    { numRuns: 10 },
  );
});
