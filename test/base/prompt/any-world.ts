import fc from "fast-check";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { functionCall, functionResult, systemEvent, thought } from "../../../src/base/prompt/ephemeris.ts";
import { leanEntry } from "../../../src/base/prompt/lean.ts";
import {
  type RoomView,
  type TimelineEntry,
  type WindowView,
  type World,
  wakeReasons,
} from "../../../src/base/prompt/types.ts";
import { elementContent, textContent } from "../../../src/base/prompt/viewport.ts";

/** Worlds with `text` in every slot that takes a string; lists hold up to `most` elements. */
export const anyWorld = (
  text: fc.Arbitrary<string>,
  { most, names = text }: { most: number; names?: fc.Arbitrary<string> },
) => {
  const at = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true });
  const listOf = <Item>(item: fc.Arbitrary<Item>) => fc.array(item, { maxLength: most });
  const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
  const userId = text.map((id) => id as UserId);
  const eventId = text.map((id) => id as EventId);
  const roomId = text.map((id) => `!${id}` as RoomId);
  const state = fc.constantFrom("normal" as const, "maximized" as const, "minimized" as const);
  const queries = listOf(fc.record({ query: text, answer: text }));
  const change = fc.record({ state, queries, top: maybe(fc.nat(100)), height: maybe(fc.nat(100)) });
  const file = fc.record({ path: text, contentType: text, text, window: maybe(change) });
  const stateFile = text.map((shown) => ({ text: shown, chars: shown.length }));
  const window: fc.Arbitrary<WindowView> = fc
    .record({
      windowId: text,
      srcType: fc.constantFrom("file" as const, "search" as const, "page" as const, "chatHistory" as const),
      src: text,
      contentType: text,
      isClosed: fc.boolean(),
      content: fc.oneof(
        text,
        listOf(fc.tuple(text, text).map(([path, match]) => element("searchResult", { path, score: "1.0" }, match))),
      ),
      view: fc.record({ top: fc.nat(100), height: fc.nat(100) }),
      isRaw: fc.boolean(),
      state,
      isPinned: fc.boolean(),
      isSystem: fc.boolean(),
      closesIn: maybe(fc.integer({ min: 1, max: 9 })),
      hasAutorefresh: fc.boolean(),
      title: maybe(text),
      attributes: maybe(fc.dictionary(fc.stringMatching(/^x[a-z]{1,8}$/), text, { maxKeys: 3 })),
      queries,
    })
    .map(({ content, view, ...window }) => {
      const whole = typeof content === "string" ? textContent(content) : elementContent(content);
      const { shown, top, isTruncated } = whole.excerpt(view, 8_000);
      return { ...window, lines: whole.lines, chars: whole.chars, shown, top, isTruncated };
    });

  const timelineEntry: fc.Arbitrary<TimelineEntry> = fc.oneof(
    fc.record({
      kind: fc.constant("message" as const),
      eventId,
      roomId,
      at,
      sender: userId,
      messageType: text,
      body: text,
      threadId: maybe(eventId),
      replyTo: maybe(eventId),
      isEdited: maybe(fc.boolean()),
      formattedDiffers: maybe(fc.boolean()),
    }),
    fc.record({
      kind: fc.constant("roomEvent" as const),
      eventId,
      roomId,
      at,
      eventType: text,
      sender: userId,
      target: maybe(userId),
      membership: maybe(text),
    }),
  );
  const entry = fc.oneof(
    fc.tuple(at, text).map(([when, said]) => thought(when, said)),
    fc.tuple(at, text).map(([when, said]) => systemEvent(when, said)),
    fc.tuple(text, text, fc.dictionary(text, text, { maxKeys: 3 })).map((call) => functionCall(...call)),
    fc.tuple(text, text).map((result) => functionResult(...result)),
    fc.tuple(text, fc.array(text, { maxLength: most })).map(([id, matches]) =>
      functionResult(
        id,
        element(
          "searchResult",
          { path: id, score: "1.0" },
          matches.map((match) => element("match", { line: 1 }, match)),
        ),
      ),
    ),
  );
  const room: fc.Arbitrary<RoomView> = fc
    .record({
      roomId,
      name: text,
      isDirect: fc.boolean(),
      isClosed: fc.boolean(),
      members: listOf(fc.record({ userId, isAdmin: fc.boolean(), isYou: fc.boolean() })),
      history: listOf(timelineEntry),
      older: fc.nat(10_000),
      historyChars: fc.nat(),
      historyWindow: maybe(change),
      newEvents: listOf(timelineEntry),
      more: fc.nat(100),
    })
    .map(({ older, more, ...room }) => ({
      ...room,
      memberCount: room.members.length + more,
      historyLines: room.history.length + older,
      unread: room.newEvents.length + more,
    }));

  return fc
    .record({
      serverName: names,
      now: at,
      timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/St_Johns"),
      agent: fc.record({
        userId: names.map((id) => id as UserId),
        model: names,
        systemPrompt: text,
        postPrompt: fc.option(text),
        wakeUpTimerSeconds: fc.option(fc.nat()),
        persona: maybe(file),
        scratchpad: maybe(file),
      }),
      guides: fc.array(fc.record({ title: names, text }), { maxLength: 2 }),
      systemAdmins: listOf(userId),
      rooms: fc.uniqueArray(room, { maxLength: most, selector: ({ roomId: id }) => id }),
      isHome: fc.boolean(),
      log: fc.record({
        entries: listOf(
          fc.oneof(
            timelineEntry.map((event) => leanEntry(event, "@agent:example.org" as UserId)),
            fc.record({ source: fc.constant("ephemeris" as const), at: maybe(at), element: entry }),
          ),
        ),
        leftOut: fc.array(roomId, { maxLength: 2 }).map((rooms) => new Set(rooms)),
      }),
      state: maybe(fc.record({ status: maybe(stateFile), activity: maybe(stateFile) })),
      roomsLeftOut: fc.nat(1000),
      ephemeris: listOf(entry),
      windows: fc.uniqueArray(window, { maxLength: most, selector: ({ windowId }) => windowId }),
      todos: fc.array(fc.record({ number: fc.integer({ min: 1, max: 9_999 }), name: text, isDone: fc.boolean() }), {
        maxLength: Math.min(most, 2),
      }),
      turn: fc.record({
        id: fc.nat(),
        reason: fc.constantFrom(...wakeReasons),
        at,
        before: fc.option(at, { nil: undefined }),
        entries: listOf(entry),
      }),
      reminders: fc.array(text, { maxLength: 3 }),
      charsMax: fc.integer({ min: 4_000, max: 100_000 }),
    })
    .map(({ isHome, ...world }): World => {
      const conversation = isHome ? ("" as RoomId) : (world.rooms[0]?.roomId ?? ("" as RoomId));
      return { ...world, conversation };
    });
};
