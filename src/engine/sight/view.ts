import { LRUCache } from "lru-cache";
import type { Database } from "../../adapters/database/connection.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import { logLimitOf, roomNumbers } from "../../base/prompt/cacheable.ts";
import type { LogView, World } from "../../base/prompt/types.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { type Desks, seatOf } from "../../domain/desk/desk.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { findQuoted, findTrusted, findUntrusted, speakersIn, type Trust } from "../../domain/rights/trust.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import { type Seen, Sights } from "../../domain/tables/sight.ts";
import type { LogState } from "../../domain/tables/steps.ts";
import { type Surroundings, surroundings } from "../../domain/tables/surroundings.ts";
import type { TakenWake, Turn } from "../../domain/tables/turns.ts";
import { modeIn } from "../operations/gate.ts";
import { notRedacted, withoutRedacted } from "./blanked.ts";
import { elementOf, plainThought } from "./entries.ts";
import type { Guides } from "./guides.ts";
import { scrollHistories } from "./histories.ts";
import { findLate, withLate } from "./late.ts";
import { advance, emptyLog, type Leaving } from "./log.ts";
import { fullSources, logItems, withoutLeft } from "./log-items.ts";
import { type CarriedMedia, mediaOf } from "./media.ts";
import { quietBefore } from "./quiet.ts";
import type { RecallMoment, Recollection } from "./recollection.ts";
import { nameGiversOf, roomViews } from "./room-views.ts";
import { statePlaces, stateSources, stateTaint, stateView } from "./state-files.ts";

/** Limit of rooms that are shown; of the others only the number is told. */
const roomsShown = 10;
const shownPerRoom = 60;
/** Limit of events, or entries, that are read for a log: more than its characters usually hold. */
const loggedMost = 1_000;
/** Limit of a room's events that are new to a conversation. */
const loggedAtFirst = 200;
const membersShown = 50;
const ephemerisShown = 50;
const logsKept = 200;

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
  readonly wasEmptied: boolean;
  readonly changes: number;
  /** Bytes of the conversation's LOG.md. */
  readonly activityBytes: number;
  /** State of the log for the conversation's next render. */
  readonly log: LogState | undefined;
  /** Lines that will leave the log soon. */
  readonly leaving?: Leaving | undefined;
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
  /** Recalls what fits the new events. */
  readonly recollect?: (moment: Omit<RecallMoment, "requesters">) => Promise<Recollection>;
}

/** Puts together what a conversation of an agent may see. */
export class View {
  readonly #database: Database;
  readonly #sights: Sights;
  /** Logs as conversations were shown them last: of the next, only what is new is written. */
  readonly #logs = new LRUCache<string, LogView>({ max: logsKept });
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
  async see(agent: Agent, turn: Turn, { wakes, entries, reminders, base, known, recollect }: Moment): Promise<Sight> {
    const { settings } = agent;
    const isLogged = settings.layout === "cacheable";
    const most = isLogged ? loggedMost : undefined;
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
      eventsAtFirst: isLogged ? loggedAtFirst : shownPerRoom,
      membersPerRoom: membersShown,
      entries: most ?? ephemerisShown,
      isLogged,
      base,
      reading: { ...this.#desks.readingFor(agent), folders: this.#guides.folders(agent.name) },
      state: statePlaces(agent, turn),
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
    const elements = seen.ephemeris.map(elementOf);
    const made = withoutRedacted(
      { entries, todos: seen.todos, ephemeris: isLogged ? elements : elements.map(plainThought) },
      seen.redacted,
    );
    const histories = await scrollHistories(this.#desks.past, seat, rooms.views, desk.changes);
    const news = rooms.here.filter(({ eventId }) => rooms.news.includes(eventId) && !known.has(eventId));
    const recall = (of: Seen) => recollect?.({ agent, here: turn.roomId, isAsked: taken.length > 0, news, seen: of });
    const recalled = await recall(seen);
    const speakers = speakersIn(new Set([...rooms.views, ...histories]));
    const before = [
      ...seen.rooms.flatMap(({ namedBy }) => namedBy ?? []),
      ...findQuoted(seen.events, [agent.userId, this.#trust.botUserId]),
      ...seen.events.flatMap(({ sender, turnTaint }) => (sender === agent.userId ? turnTaint : [])),
      ...[...seen.ephemeris, ...seen.todos].flatMap(({ taint }) => taint),
      ...stateTaint(seen),
      ...(seen.log?.summary?.taint ?? []),
    ];
    const sight: Sight = {
      audience: seen.audience,
      wasEmptied: seen.wasEmptied,
      changes: seen.changes,
      log: undefined,
      activityBytes: seen.state.find(({ path }) => path.endsWith("/LOG.md"))?.size ?? 0,
      sources: [
        turn.roomId,
        ...rooms.views.filter((room) => !room.isClosed).map((room) => room.roomId),
        ...seen.todos.flatMap((todo) => todo.sources),
        ...desk.sources,
        ...stateSources(seen),
        ...seen.entrySources,
        ...(seen.log?.summary?.sources ?? []),
        ...(recalled?.sources ?? []),
      ],
      taint: await findUntrusted(
        [...speakers, ...desk.taint, ...before, ...(recalled?.taint ?? [])],
        agent,
        this.#trust,
      ),
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
        recalled: recalled && notRedacted(recalled.found, seen.redacted),
        ephemeris: made.ephemeris,
        ephemerisLines: seen.ephemerisLines,
        ephemerisWindow: desk.changes.get("ephemeris"),
        windows: desk.windows,
        turn: {
          id: turn.number,
          reason: turn.reason,
          at: turn.startedAt,
          before: seen.lastTurnAt ?? undefined,
          quietFor: quietBefore(rooms.here, rooms.news, turn.startedAt),
          entries: made.entries,
        },
        todos: made.todos,
        state: stateView(agent, seen),
        reminders,
        charsMax: settings.approxContextCharsMax,
      },
    };
    if (!isLogged) return sight;
    const late = findLate(seen.events, rooms, turn.roomId);
    const shown = { ...sight.world, rooms: withLate(histories, late, turn.roomId) };
    const items = logItems(seen, made.ephemeris, {
      self: agent.userId,
      botUserId: this.#trust.botUserId,
      prefix: this.#prefix,
      open: new Set(rooms.views.filter((room) => !room.isClosed).map(({ roomId }) => roomId)),
      fresh: new Set(shown.rooms.find(({ roomId }) => roomId === turn.roomId)?.newEvents.map(({ eventId }) => eventId)),
      until: late.since,
    });
    const conversation = `${agent.name} ${turn.roomId}`;
    const { log, next, leaving } = advance(seen.log ?? emptyLog, items, {
      before: this.#logs.get(conversation),
      here: turn.roomId,
      charsMax: settings.approxContextCharsMax,
      timeZone: settings.timeZone,
      numbers: roomNumbers(shown),
      // Further steps are appended to what was shown: the log is cut for good between turns.
      max: base === undefined ? logLimitOf(shown) : Number.POSITIVE_INFINITY,
      full: fullSources(seen, loggedMost),
    });
    this.#logs.set(conversation, log);
    const cut = { ...sight, log: next, leaving, world: { ...shown, log } };
    const left = withoutLeft(seen, next, shown.rooms);
    const anew = left && (await recall(left));
    if (!anew) return cut;
    return {
      ...cut,
      sources: [...cut.sources, ...anew.sources],
      taint: [...cut.taint, ...(await findUntrusted(anew.taint, agent, this.#trust))],
      world: { ...cut.world, recalled: notRedacted(anew.found, seen.redacted) },
    };
  }
}
