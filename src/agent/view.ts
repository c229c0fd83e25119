import type { FileView, RoomView, World } from "../context/types.ts";
import type { Database } from "../database/connection.ts";
import type { StoredEvent } from "../database/events.ts";
import { Files } from "../database/files.ts";
import { History, type RoomRow, type Viewer } from "../database/history.ts";
import { Rooms } from "../database/rooms.ts";
import type { TakenWake, Turn } from "../database/turns.ts";
import type { Clock } from "../lib/clock.ts";
import { type EventId, HOME, type RoomId, type UserId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { powerOf, readPowerLevels } from "../matrix/state.ts";
import { type Agent, personaPath, splitPath } from "./agent.ts";
import type { Rights } from "./rights.ts";
import { timelineEntry } from "./timeline.ts";

/** Rooms that are shown; the number of those beyond is said. */
const roomsShown = 10;
const eventsPerRoom = 60;
const membersShown = 50;
const ephemerisShown = 50;
/** Events that stand as new in one turn. */
const newEventsShown = 10;

export interface Guide {
  readonly title: string;
  readonly text: string;
}

/** What a step shows, and what that means for walls and for the next turn. */
export interface Sight {
  readonly world: World;
  readonly sources: readonly RoomId[];
  /** Place of the newest event of the conversation's room that is shown. */
  readonly seen: number;
  /** The newest of them that somebody else sent and the agent had not seen. */
  readonly unread: EventId | undefined;
}

/** Puts together what a conversation of an agent may see. */
export class View {
  readonly #history: History;
  readonly #rooms: Rooms;
  readonly #files: Files;
  readonly #clock: Clock;
  readonly #serverName: string;
  readonly #rights: Rights;
  readonly #defaultModel: () => string;
  readonly #guides: readonly Guide[];
  /** Before this, an agent without `reloadEphemeris` remembers nothing. */
  readonly #startedAt: Date;

  constructor(
    database: Database,
    options: {
      readonly clock: Clock;
      readonly serverName: string;
      readonly rights: Rights;
      readonly defaultModel: () => string;
      readonly guides: readonly Guide[];
    },
  ) {
    this.#history = new History(database);
    this.#rooms = new Rooms(database);
    this.#files = new Files(database);
    this.#clock = options.clock;
    this.#serverName = options.serverName;
    this.#rights = options.rights;
    this.#defaultModel = options.defaultModel;
    this.#guides = options.guides;
    this.#startedAt = options.clock.now();
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
  ): Promise<Sight> {
    const { settings } = agent;
    const audience = turn.roomId === HOME ? [agent.owner] : await this.#rooms.humans(turn.roomId);
    const viewer: Viewer = { agent: agent.name, userId: agent.userId, owner: agent.owner, here: turn.roomId, audience };
    const [rooms, files, ephemeris] = await Promise.all([
      this.#roomViews(viewer, wakes),
      this.#readFiles(agent),
      this.#history.ephemeris(viewer, turn.id, settings.reloadEphemeris ? null : this.#startedAt, ephemerisShown),
    ]);
    const note = wakes.find((wake) => wake.note)?.note;
    return {
      sources: [turn.roomId, ...rooms.views.filter((room) => !room.closed).map((room) => room.roomId)],
      seen: rooms.here.at(-1)?.position ?? 0,
      unread: rooms.here.findLast(({ sender, position }) => sender !== agent.userId && position > rooms.seenBefore)
        ?.eventId,
      world: {
        conversation: turn.roomId,
        serverName: this.#serverName,
        now: this.#clock.now(),
        timeZone: settings.timeZone,
        agent: {
          userId: agent.userId,
          model: this.modelOf(agent),
          systemPrompt: settings.systemPrompt,
          postPrompt: settings.postPrompt,
          wakeUpTimerSeconds: agent.wakeUpTimerSeconds,
          persona: files.persona,
          scratchpad: files.scratchpad,
        },
        guides: this.#guides,
        systemAdmins: this.#rights.admins,
        rooms: rooms.views,
        roomsLeftOut: rooms.leftOut,
        ephemeris: ephemeris.map((entry) => parse(entry)),
        windows: [],
        turn: { id: turn.number, reason: turn.reason, at: turn.startedAt, entries },
        reminders: note ? [...reminders, note] : reminders,
        charsMax: settings.approxContextCharsMax,
      },
    };
  }

  async #readFiles(agent: Agent): Promise<{ persona: FileView | undefined; scratchpad: FileView | undefined }> {
    const paths = [
      personaPath(agent),
      ...(agent.settings.scratchPadFile === null ? [] : [agent.settings.scratchPadFile]),
    ];
    const files = await this.#files.read(paths.map(splitPath));
    const view = (path: string | null): FileView | undefined => {
      const file = files.find((candidate) => `${candidate.share}:${candidate.path}` === path);
      return file && path !== null ? { path, contentType: file.contentType, text: file.text ?? "" } : undefined;
    };
    return { persona: view(personaPath(agent)), scratchpad: view(agent.settings.scratchPadFile) };
  }

  async #roomViews(
    viewer: Viewer,
    wakes: readonly TakenWake[],
  ): Promise<{ views: RoomView[]; leftOut: number; here: readonly StoredEvent[]; seenBefore: number }> {
    const rows = await this.#history.rooms(viewer, roomsShown);
    const open = rows.filter((row) => row.readable).map((row) => row.roomId);
    const taken = wakes.map((wake) => wake.eventId).filter((id) => id !== null);
    const [events, members] = await Promise.all([
      this.#history.events(viewer, open, eventsPerRoom, taken),
      this.#history.members(open, [...this.#rights.admins, viewer.userId], membersShown),
    ]);
    const views = rows.map((row): RoomView => {
      const inRoom = events.filter((event) => event.roomId === row.roomId);
      const here = row.roomId === viewer.here;
      const [history, fresh] = here
        ? splitHere(inRoom, row, new Set(taken), viewer.userId)
        : splitElsewhere(inRoom, row, viewer.userId);
      const present = members.filter((member) => member.roomId === row.roomId);
      return {
        roomId: row.roomId,
        name: row.name ?? (row.readable ? nameFromMembers(present, viewer.userId) : ""),
        direct: row.direct,
        closed: !row.readable,
        members: present.map(({ userId }) => ({
          userId,
          admin: this.#rights.admins.includes(userId) || isRoomAdmin(row, userId),
          you: userId === viewer.userId,
        })),
        memberCount: present[0]?.total ?? 0,
        history: history.map(timelineEntry),
        historyLines: Math.max(row.shownEvents - fresh.length, history.length),
        historyChars: row.shownChars,
        newEvents: fresh.map(timelineEntry),
        unread: here ? fresh.length : row.unread,
      };
    });
    return {
      views,
      leftOut: Math.max(0, (rows[0]?.total ?? 0) - rows.length),
      here: events.filter((event) => event.roomId === viewer.here),
      seenBefore: rows.find((row) => row.roomId === viewer.here)?.seenPosition ?? 0,
    };
  }
}

/**
 * In the conversation's own room the events that caused the turn are new, and so is what was said since the first of
 * them and was not shown before, up to the turn's limit.
 */
function splitHere(
  events: readonly StoredEvent[],
  row: RoomRow,
  taken: ReadonlySet<EventId>,
  self: UserId,
): [StoredEvent[], StoredEvent[]] {
  const first = events.findIndex((event) => taken.has(event.eventId));
  if (first < 0) return [[...events], []];
  let room = newEventsShown - events.filter((event) => taken.has(event.eventId)).length;
  const fresh = new Set<EventId>();
  for (const event of events.slice(first).toReversed()) {
    if (taken.has(event.eventId)) fresh.add(event.eventId);
    else if (event.sender !== self && event.position > row.seenPosition && room-- > 0) fresh.add(event.eventId);
  }
  return [events.filter((event) => !fresh.has(event.eventId)), events.filter((event) => fresh.has(event.eventId))];
}

/** In other rooms everything is new that came since the agent last worked there. */
function splitElsewhere(events: readonly StoredEvent[], row: RoomRow, self: UserId): [StoredEvent[], StoredEvent[]] {
  const unread = events
    .filter((event) => event.position > row.seenPosition && event.sender !== self)
    .slice(-newEventsShown);
  const fresh = new Set(unread);
  return [events.filter((event) => !fresh.has(event)), unread];
}

const nameFromMembers = (members: readonly { userId: UserId; displayName: string | null }[], self: UserId): string =>
  members
    .filter((member) => member.userId !== self)
    .slice(0, 3)
    .map((member) => member.displayName ?? member.userId)
    .join(", ");

/** Power level 100 or more, or above all levels. */
const isRoomAdmin = (row: RoomRow, userId: UserId): boolean =>
  row.creator === userId || powerOf(readPowerLevels(row.powerLevels ?? {}), userId) >= 100;
