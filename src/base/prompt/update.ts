import type { EventId, RoomId } from "../lib/ids.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { leanNews } from "./lean.ts";
import { listPart, type Shown } from "./list-part.ts";
import { leanRoom, roomLists } from "./room.ts";
import { setsStatus, statusPart } from "./state.ts";
import { localTime } from "./time.ts";
import { removedTodo, todoElement } from "./todo.ts";
import type { TimelineEntry, World } from "./types.ts";
import { personaWindow, scratchpadWindow, windowsPart } from "./window.ts";

/** The most that windows, todos and histories, each, take in an update. New events are never cut for it. */
const updateShare = 0.1;

/** Remembers which changing things a turn has been shown. */
export class Told {
  readonly events = new Set<EventId>();
  readonly windows = new Map<string, string>();
  readonly histories = new Map<RoomId, string>();
  readonly todos = new Map<number, string>();
  readonly reminders = new Set<string>();
  #status = "";
  #persona: string | undefined;
  #scratchpad: string | undefined;

  /** Takes note of what a world shows. Returns what of it is told for the first time, or is not as it was. */
  take({ agent, rooms, conversation, windows, todos, reminders, state, turn, charsMax }: World) {
    const own = rooms.find((room) => room.roomId === conversation && !room.isClosed);
    const isNew = ({ eventId, sender }: TimelineEntry) => sender !== agent.userId && !this.events.has(eventId);
    const newEvents = (own?.newEvents ?? []).filter(isNew);
    for (const { eventId } of newEvents) this.events.add(eventId);
    const changed = windows.filter((window) => {
      const { closesIn: _, ...look } = window;
      const now = JSON.stringify(look);
      const isSame = this.windows.get(window.windowId) === now;
      this.windows.set(window.windowId, now);
      return !isSame;
    });
    const moved = rooms.filter((room) => {
      const now = JSON.stringify(room.historyWindow ?? null);
      const isSame = (this.histories.get(room.roomId) ?? "null") === now;
      this.histories.set(room.roomId, now);
      return !isSame && !room.isClosed;
    });
    const shown = todos.map((todo) => ({ number: todo.number, element: todoElement(todo) }));
    const gone = [...this.todos.keys()].filter((number) => !todos.some((todo) => todo.number === number));
    const planned = shown.filter(({ number, element }) => this.todos.get(number) !== JSON.stringify(element));
    for (const { number, element } of planned) this.todos.set(number, JSON.stringify(element));
    for (const number of gone) this.todos.delete(number);
    const [persona, scratchpad] = [JSON.stringify(agent.persona), JSON.stringify(agent.scratchpad)];
    const always = [
      ...(agent.persona && persona !== this.#persona ? [personaWindow(agent.persona, atTop(charsMax))] : []),
      ...(agent.scratchpad && scratchpad !== this.#scratchpad
        ? [scratchpadWindow(agent.scratchpad, atTop(charsMax))]
        : []),
    ];
    [this.#persona, this.#scratchpad] = [persona, scratchpad];
    const { text: status = "" } = state?.status ?? {};
    const isStatusNew = status !== this.#status && !setsStatus(turn.entries, status);
    this.#status = status;
    const said = reminders.filter((reminder) => !this.reminders.has(reminder));
    for (const reminder of said) this.reminders.add(reminder);
    return {
      own,
      newEvents,
      windows: changed,
      always,
      status: isStatusNew && state ? statusPart(state) : undefined,
      moved,
      todos: [...planned.map((todo) => todo.element), ...gone.map(removedTodo)],
      reminders: said,
    };
  }
}

const atTop = (charsMax: number) => ({ depth: 1, limit: Math.floor(charsMax * updateShare) });

const none: Shown = { elements: [], reach: 0, leftOut: 0 };

/**
 * Describes what has changed since the render to which the steps of a turn are appended: events that came meanwhile;
 * windows and histories; todos; new reminders. Undefined where nothing has changed.
 */
export const updateOf = (world: World, told: Told): { text: string; eventIds: readonly EventId[] } | undefined => {
  const { own, newEvents, windows, always, status, moved, todos, reminders } = told.take(world);
  if (!status && [newEvents, windows, always, moved, todos, reminders].every(({ length }) => length === 0))
    return undefined;
  const { agent, charsMax } = world;
  const limit = Math.floor(charsMax * updateShare);
  const write = (entry: TimelineEntry) => leanNews(entry, agent.userId, world);
  const events = listPart(newEvents.map(write), { depth: 4, limit: charsMax, keep: "last" }).cut(charsMax);
  const unread = newEvents.length;
  const room =
    own && unread > 0
      ? leanRoom({ ...own, historyWindow: undefined, unread }, { history: none, newEvents: events })
      : undefined;
  const histories = moved.map((each) => {
    const history = roomLists(each, write, limit).history.cut(Math.floor(limit / moved.length));
    return leanRoom({ ...each, unread: 0 }, { history, newEvents: none });
  });
  const shown: Element = element("chatInterface", { currentDatetime: localTime(world.now, world.timeZone) }, [
    room,
    ...histories,
    ...reminders.map((reminder) => element("systemReminder", {}, reminder)),
    ...listPart(todos, { depth: 1, limit, keep: "first" }).cut(limit).elements,
    ...always.map((window) => window.cut(limit)),
    status?.cut(limit),
    ...windowsPart(windows, limit).cut(limit).elements,
  ]);
  const eventIds = [...newEvents, ...moved.flatMap(({ history }) => history)].map(({ eventId }) => eventId);
  return { text: render(shown), eventIds };
};
