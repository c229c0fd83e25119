import type { Database } from "../../adapters/database/connection.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { memo } from "../../base/lib/memo.ts";
import { blank, Repeats } from "../../base/lib/repeats.ts";
import type { Element } from "../../base/lmml/element.ts";
import { keepRendered } from "../../base/lmml/render.ts";
import { logLimitOf, roomNumbers } from "../../base/prompt/cacheable.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import type { World } from "../../base/prompt/types.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { type Desks, seatOf } from "../../domain/desk/desk.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { findQuoted, findTrusted, findUntrusted, speakersIn, type Trust } from "../../domain/rights/trust.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import { type EntryRow, type Seen, Sights } from "../../domain/tables/sight.ts";
import type { LogState } from "../../domain/tables/steps.ts";
import { type Surroundings, surroundings } from "../../domain/tables/surroundings.ts";
import type { TakenWake, Turn } from "../../domain/tables/turns.ts";
import { modeIn } from "../operations/gate.ts";
import { blankElement } from "./blanked.ts";
import type { Guides } from "./guides.ts";
import { scrollHistories } from "./histories.ts";
import { findLate, withLate } from "./late.ts";
import { advance, emptyLog } from "./log.ts";
import { logItems } from "./log-items.ts";
import { type CarriedMedia, mediaOf } from "./media.ts";
import { nameGiversOf, roomViews } from "./room-views.ts";

/** Limit of rooms that are shown; of the others only the number is told. */
const roomsShown = 10;
const shownPerRoom = 60;
/** Limit of events, or entries, that are read for a log: more than its characters usually hold. */
const loggedMost = 1_000;
/** Limit of a room's events that are new to a conversation. */
const loggedAtFirst = 200;
const membersShown = 50;
const ephemerisShown = 50;

/** World that a step shows, and the facts that walls and the next turn need. */
export interface Sight {
  readonly world: World;
  readonly sources: readonly RoomId[];
  /** Untrusted texts in it; see `untrusted`. */
  readonly taint: readonly string[];
  /** Events that are new in the turn, and that the agent has to be shown. */
  readonly news: readonly EventId[];
  /** Tells how far the conversation's room is shown before the first of the events that wait. */
  readonly seenWithout: (waiting: ReadonlySet<EventId>) => Reach;
  readonly media: CarriedMedia;
  readonly audience: readonly UserId[];
  /** See `Seen`. */
  readonly emptied: boolean;
  readonly changes: number;
  /** State of the log for the conversation's next render. */
  readonly log: LogState | undefined;
}

/** How far a room is shown. */
interface Reach {
  /** Place of the newest event that is shown. */
  readonly seen: number;
  /** The newest of them that somebody else sent and the agent had not seen. */
  readonly unread: EventId | undefined;
}

/** Step of a turn at which its agent looks. */
interface Moment {
  readonly wakes: readonly TakenWake[];
  /** Thoughts, calls and results of the turn so far. */
  readonly entries: readonly Element[];
  readonly reminders: readonly string[];
  /** The step whose render is in use; see `Exchange`. */
  readonly base: number | undefined;
  /** New events with which the agent has dealt in this turn. */
  readonly known: ReadonlySet<EventId>;
}

/** Puts together what a conversation of an agent may see. */
export class View {
  readonly #database: Database;
  readonly #sights: Sights;
  readonly #desks: Desks;
  readonly #guides: Guides;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly serverName: string;
  readonly #rights: Rights;
  readonly #trust: Trust;
  /** Names the model with which an agent thinks. */
  readonly modelOf: (agent: Agent) => string;
  /** Start of the process: an agent without `reloadEphemeris` remembers nothing from before. */
  readonly #startedAt: Date;

  constructor(
    database: Database,
    options: {
      readonly clock: Clock;
      readonly serverName: string;
      readonly rights: Rights;
      readonly botUserId: UserId;
      readonly modelOf: (agent: Agent) => string;
      readonly desks: Desks;
      readonly guides: Guides;
      /** Before the words of a command. */
      readonly prefix: string;
    },
  ) {
    this.#database = database;
    this.#sights = new Sights(database);
    this.#desks = options.desks;
    this.#guides = options.guides;
    this.#prefix = options.prefix;
    this.#clock = options.clock;
    this.serverName = options.serverName;
    this.#rights = options.rights;
    this.#trust = options;
    this.modelOf = options.modelOf;
    this.#startedAt = options.clock.now();
  }

  /** Reads where an agent works, and for whom, with its untrusted texts. */
  async surroundings(
    agent: Agent,
    roomId: RoomId,
    userIds: readonly UserId[],
  ): Promise<Surroundings & { readonly taint: readonly string[] }> {
    const { people, ...room } = await surroundings(this.#database, roomId, userIds);
    const trusted = await findTrusted(userIds, agent, this.#trust);
    return {
      ...room,
      people: people.map((person) => (trusted.has(person.userId) ? person : { ...person, displayName: null })),
      taint: await findUntrusted(room.namedBy === null ? [] : [room.namedBy], agent, this.#trust),
    };
  }

  /** Sees the agent's world as it is now. */
  async see(agent: Agent, turn: Turn, { wakes, entries, reminders, base, known }: Moment): Promise<Sight> {
    const { settings } = agent;
    const logged = settings.layout === "cacheable";
    const most = logged ? loggedMost : undefined;
    const taken = wakes.map((wake) => wake.eventId).filter((id) => id !== null);
    const seat = seatOf(agent, turn.roomId);
    const seen = await this.#sights.see({
      ...seat,
      turnId: turn.id,
      always: taken,
      first: [...this.#rights.admins, agent.userId],
      since: settings.reloadEphemeris ? null : this.#startedAt,
      rooms: roomsShown,
      eventsPerRoom: most ?? shownPerRoom,
      eventsAtFirst: logged ? loggedAtFirst : shownPerRoom,
      membersPerRoom: membersShown,
      entries: most ?? ephemerisShown,
      logged,
      base,
      reading: { ...this.#desks.readingFor(agent), folders: this.#guides.folders(agent.name) },
    });
    const desk = await this.#desks.lay(agent, seen.desk);
    const rooms = roomViews(seen, {
      userId: agent.userId,
      here: turn.roomId,
      taken,
      known,
      admins: this.#rights.admins,
      trusted: await findTrusted(nameGiversOf(seen, agent.userId), agent, this.#trust),
    });
    const isNew = ({ sender, position, eventId }: StoredEvent) =>
      sender !== agent.userId && (position > rooms.seenBefore || taken.includes(eventId));
    const { todos } = seen;
    const elements = seen.ephemeris.map(elementOf);
    const made = withoutRedacted(
      { entries, todos, ephemeris: logged ? elements : elements.map(plainThought) },
      seen.redacted,
    );
    const histories = await scrollHistories(this.#desks.past, seat, rooms.views, desk.changes);
    const speakers = speakersIn([...rooms.views, ...histories]);
    const before = [
      ...seen.rooms.flatMap(({ namedBy }) => namedBy ?? []),
      ...findQuoted(seen.events, [agent.userId, this.#trust.botUserId]),
      ...seen.ownTaint,
      ...[...seen.ephemeris, ...seen.todos].flatMap(({ taint }) => taint),
    ];
    const sight: Sight = {
      audience: seen.audience,
      emptied: seen.emptied,
      changes: seen.changes,
      log: undefined,
      sources: [
        turn.roomId,
        ...rooms.views.filter((room) => !room.closed).map((room) => room.roomId),
        ...seen.todos.flatMap((todo) => todo.sources),
        ...desk.sources,
      ],
      taint: await findUntrusted([...speakers, ...desk.taint, ...before], agent, this.#trust),
      news: rooms.news,
      seenWithout(waiting) {
        const first = rooms.here.findIndex(({ eventId }) => waiting.has(eventId));
        const shown = first < 0 ? rooms.here : rooms.here.slice(0, first);
        return { seen: shown.at(-1)?.position ?? 0, unread: shown.findLast(isNew)?.eventId };
      },
      media: mediaOf(rooms.here, isNew),
      world: {
        conversation: turn.roomId,
        serverName: this.serverName,
        now: this.#clock.now(),
        timeZone: settings.timeZone,
        agent: {
          userId: agent.userId,
          model: this.modelOf(agent),
          systemPrompt: settings.systemPrompt,
          postPrompt: settings.postPrompt,
          wakeUpTimerSeconds: agent.wakeUpTimerSeconds,
          mode: modeIn(agent, seen.mode),
          persona: desk.persona,
          scratchpad: desk.scratchpad,
        },
        guides: this.#guides.of(agent, seen.desk.files),
        systemAdmins: this.#rights.admins,
        rooms: histories,
        log: { entries: [], leftOut: new Set() },
        roomsLeftOut: Math.max(0, (seen.rooms[0]?.total ?? 0) - seen.rooms.length),
        ephemeris: made.ephemeris,
        ephemerisLines: seen.ephemerisLines,
        ephemerisWindow: desk.changes.get("ephemeris"),
        windows: desk.windows,
        turn: {
          id: turn.number,
          reason: turn.reason,
          at: turn.startedAt,
          before: seen.lastTurnAt ?? undefined,
          entries: made.entries,
        },
        todos: made.todos,
        reminders,
        charsMax: settings.approxContextCharsMax,
      },
    };
    if (!logged) return sight;
    const late = findLate(seen.events, rooms, turn.roomId);
    const shown = { ...sight.world, rooms: withLate(histories, late, turn.roomId) };
    const items = logItems(seen, made.ephemeris, {
      self: agent.userId,
      botUserId: this.#trust.botUserId,
      prefix: this.#prefix,
      open: new Set(rooms.views.filter((room) => !room.closed).map(({ roomId }) => roomId)),
      fresh: new Set(shown.rooms.find(({ roomId }) => roomId === turn.roomId)?.newEvents.map(({ eventId }) => eventId)),
      until: late.since,
    });
    const { log, next } = advance(seen.log ?? emptyLog, items, {
      here: turn.roomId,
      charsMax: settings.approxContextCharsMax,
      timeZone: settings.timeZone,
      numbers: roomNumbers(shown),
      // Further steps are appended to what was shown: the log is cut for good between turns.
      max: base === undefined ? logLimitOf(shown) : Number.POSITIVE_INFINITY,
      full: fullSources(seen),
    });
    return { ...sight, log: next, world: { ...shown, log } };
  }
}

/**
 * Blanks words that were redacted since the turn began in the texts that the turn has made; see `blankRepetitions`, which
 * may come only after this look.
 */
function withoutRedacted<
  Made extends Pick<Seen, "todos"> & { readonly entries: readonly Element[]; readonly ephemeris: readonly Element[] },
>(made: Made, redacted: Seen["redacted"]): Made {
  if (redacted.length === 0) return made;
  const repeats = new Repeats(redacted);
  const blanked = (elements: readonly Element[]) => elements.map((one) => blankElement(one, repeats));
  const todos = made.todos.map((todo) => (repeats.in(todo.name) ? { ...todo, name: blank } : todo));
  return { ...made, entries: blanked(made.entries), ephemeris: blanked(made.ephemeris), todos };
}

/** Finds the sources of which the limit was read: they may have older items. */
const fullSources = ({ events, ephemeris }: Seen): ReadonlySet<RoomId | "ephemeris"> =>
  new Set([
    ...[...Map.groupBy(events, ({ roomId }) => roomId)].flatMap(([roomId, { length }]) =>
      length >= loggedMost ? [roomId] : [],
    ),
    ...(ephemeris.length >= loggedMost ? (["ephemeris"] as const) : []),
  ]);

const elementOf = memo(({ entry }: EntryRow) => keepRendered(fromStored(entry)));

/** Removes the mark that a text was said: only a log needs it. */
const plainThought = memo((element: Element): Element => {
  const { roomId: _, sent, ...attributes } = element.attributes;
  return element.name === "thought" && sent ? keepRendered({ ...element, attributes }) : element;
});
