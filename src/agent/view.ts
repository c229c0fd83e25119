import { timelineElement } from "../context/timeline.ts";
import type { RoomView, World } from "../context/types.ts";
import type { Database } from "../database/connection.ts";
import type { StoredEvent } from "../database/events.ts";
import { type EntryRow, type Seen, Sights, type Surroundings, surroundings } from "../database/sight.ts";
import type { LogState } from "../database/steps.ts";
import type { TakenWake, Turn } from "../database/turns.ts";
import type { Clock } from "../lib/clock.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import { memo } from "../lib/memo.ts";
import type { Element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { lasting } from "../lmml/render.ts";
import type { Agent } from "./agent.ts";
import { type Desks, seatOf } from "./desk.ts";
import { type CarriedMedia, mediaOf } from "./images.ts";
import { advance, type LogItem, saidIn } from "./log.ts";
import { modeIn } from "./mode.ts";
import type { Rights } from "./rights.ts";
import { roomViews } from "./room-views.ts";
import { quotedIn, speakersIn, type Trust, untrusted } from "./taint.ts";
import { timelineEntry } from "./timeline.ts";

/** Rooms that are shown; the number of those beyond is said. */
const roomsShown = 10;
const shownPerRoom = 60;
/** A log is cut by its characters: this many events, or entries, do not fit into a usual one. */
const loggedMost = 200;
const membersShown = 50;
const ephemerisShown = 50;

/** What a step shows, and what that means for walls and for the next turn. */
export interface Sight {
  readonly world: World;
  readonly sources: readonly RoomId[];
  /** Untrusted texts in it; see `untrusted`. */
  readonly taint: readonly string[];
  /** Place of the newest event of the conversation's room that is shown. */
  readonly seen: number;
  /** The newest of them that somebody else sent and the agent had not seen. */
  readonly unread: EventId | undefined;
  readonly media: CarriedMedia;
  readonly audience: readonly UserId[];
  /** See `Seen`. */
  readonly emptied: boolean;
  /** To be remembered for the conversation's next render. */
  readonly log: LogState | undefined;
}

/** Puts together what a conversation of an agent may see. */
export class View {
  readonly #database: Database;
  readonly #sights: Sights;
  readonly #desks: Desks;
  readonly #clock: Clock;
  readonly serverName: string;
  readonly #rights: Rights;
  readonly #trust: Trust;
  readonly #defaultModel: () => string;
  /** Before this, an agent without `reloadEphemeris` remembers nothing. */
  readonly #startedAt: Date;

  constructor(
    database: Database,
    options: {
      readonly clock: Clock;
      readonly serverName: string;
      readonly rights: Rights;
      readonly botUserId: UserId;
      readonly defaultModel: () => string;
      readonly desks: Desks;
    },
  ) {
    this.#database = database;
    this.#sights = new Sights(database);
    this.#desks = options.desks;
    this.#clock = options.clock;
    this.serverName = options.serverName;
    this.#rights = options.rights;
    this.#trust = options;
    this.#defaultModel = options.defaultModel;
    this.#startedAt = options.clock.now();
  }

  surroundings(roomId: RoomId, people: readonly UserId[]): Promise<Surroundings> {
    return surroundings(this.#database, roomId, people);
  }

  modelOf(agent: Agent): string {
    return agent.settings.model ?? this.#defaultModel();
  }

  async of(
    agent: Agent,
    turn: Turn,
    wakes: readonly TakenWake[],
    entries: readonly Element[],
    reminders: readonly string[],
    base: number | undefined,
  ): Promise<Sight> {
    const { settings } = agent;
    const logged = settings.layout === "cacheable";
    const most = logged ? loggedMost : undefined;
    const taken = wakes.map((wake) => wake.eventId).filter((id) => id !== null);
    const seen = await this.#sights.see({
      ...seatOf(agent, turn.roomId),
      turnId: turn.id,
      always: taken,
      first: [...this.#rights.admins, agent.userId],
      since: settings.reloadEphemeris ? null : this.#startedAt,
      rooms: roomsShown,
      eventsPerRoom: most ?? shownPerRoom,
      membersPerRoom: membersShown,
      entries: most ?? ephemerisShown,
      logged,
      base,
      reading: this.#desks.reading(agent),
    });
    const desk = await this.#desks.lay(agent, seen.desk);
    const rooms = roomViews(seen, { userId: agent.userId, here: turn.roomId, taken, admins: this.#rights.admins });
    const isNew = ({ sender, position, eventId }: StoredEvent) =>
      sender !== agent.userId && (position > rooms.seenBefore || taken.includes(eventId));
    const ephemeris = seen.ephemeris.map(elementOf);
    const log = logged
      ? advance(seen.log ?? { from: {}, marks: [] }, this.#logItems(seen, rooms.views, turn.roomId, ephemeris), {
          turnId: turn.id,
          here: turn.roomId,
          charsMax: settings.approxContextCharsMax,
          most: loggedMost,
        })
      : undefined;
    const histories = await this.#desks.histories(agent, turn.roomId, rooms.views, desk.changes);
    const speakers = speakersIn([...rooms.views, ...histories]);
    const before = [
      ...quotedIn(seen.events, [agent.userId, this.#trust.botUserId]),
      ...seen.ownTaint,
      ...[...seen.ephemeris, ...seen.todos].flatMap(({ taint }) => taint),
    ];
    return {
      audience: seen.audience,
      emptied: seen.emptied,
      log: log?.next,
      sources: [
        turn.roomId,
        ...rooms.views.filter((room) => !room.closed).map((room) => room.roomId),
        ...seen.todos.flatMap((todo) => todo.sources),
        ...desk.sources,
      ],
      taint: await untrusted([...speakers, ...desk.taint, ...before], agent, this.#trust),
      seen: rooms.here.at(-1)?.position ?? 0,
      unread: rooms.here.findLast(isNew)?.eventId,
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
        guides: desk.guides,
        systemAdmins: this.#rights.admins,
        rooms: histories,
        log: log?.pieces ?? [],
        roomsLeftOut: Math.max(0, (seen.rooms[0]?.total ?? 0) - seen.rooms.length),
        ephemeris,
        ephemerisWindow: desk.changes.get("ephemeris"),
        windows: desk.windows,
        turn: {
          id: turn.number,
          reason: turn.reason,
          at: turn.startedAt,
          before: seen.lastTurnAt ?? undefined,
          entries,
        },
        todos: seen.todos,
        reminders,
        charsMax: settings.approxContextCharsMax,
      },
    };
  }

  /** An action appears once: what the agent said stands in the rooms, not also as a call. */
  #logItems(
    { events, ephemeris }: Seen,
    rooms: readonly RoomView[],
    here: RoomId,
    entries: readonly Element[],
  ): LogItem[] {
    const open = rooms.filter((room) => !room.closed);
    const fresh = new Set(open.find((room) => room.roomId === here)?.newEvents.map(({ eventId }) => eventId));
    const said = saidIn(entries, new Set(open.map((room) => room.roomId)));
    return [
      ...events.map((event) => ({
        source: event.roomId,
        position: event.position,
        arrivedAt: event.receivedAt,
        element: timelineElement(timelineEntry(event), this.serverName),
        fresh: fresh.has(event.eventId),
      })),
      ...ephemeris.flatMap(({ id, at }, index) => {
        const element = entries[index];
        if (!element || said.has(element.attributes.id)) return [];
        return [{ source: "ephemeris" as const, position: id, arrivedAt: at, element, fresh: false }];
      }),
    ];
  }
}

const elementOf = memo(({ entry }: EntryRow) => lasting(parse(entry)));
