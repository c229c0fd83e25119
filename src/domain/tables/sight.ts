import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Fingerprint } from "../../base/lib/repeats.ts";
import type { StoredEvent } from "./events.ts";
import type { FilePlace } from "./files.ts";
import { KnownRows, type Proven, type Versioned } from "./row-cache.ts";
import { type Look, sightQuery } from "./sight-query.ts";
import type { LogState } from "./steps.ts";
import type { Todo } from "./todos.ts";
import { type DeskItem, type DeskRows, deskOf } from "./windows.ts";

export interface RoomRow {
  readonly roomId: RoomId;
  /** Null where it has none, and where it may not be read. */
  readonly name: string | null;
  /** User who has set it. */
  readonly namedBy: UserId | null;
  readonly isDirect: boolean;
  readonly isReadable: boolean;
  readonly unread: number;
  readonly seenPosition: number;
  readonly shownEvents: number;
  readonly shownChars: number;
  /** Number of rooms in all. */
  readonly total: number;
}

interface MemberRow {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly displayName: string | null;
  readonly total: number;
}

export interface SeenEvent extends StoredEvent {
  /** Time at which it came into the history, by the database's clock. */
  readonly shownAt: Date;
  /** Numbers of the events that it relates to, by their ids. */
  readonly numbers: Readonly<Record<string, number>> | null;
  /** Untrusted texts that turns of ours had read in which it was said. */
  readonly turnTaint: readonly string[];
}

/** An entry of the ephemeris: one LMML element. */
export interface EntryRow {
  readonly id: number;
  readonly entry: string;
  readonly at: Date;
  /** Untrusted texts that its turn had read. */
  readonly taint: readonly string[];
}

export interface Seen {
  /** People who see what is said here, as `audience_of` names them. */
  readonly audience: readonly UserId[];
  /** The conversation's own room first, then the others by their last activity. */
  readonly rooms: readonly RoomRow[];
  /** The newest events of each room that may be read, oldest first. */
  readonly events: readonly SeenEvent[];
  /** Joined members of each room that may be read. */
  readonly members: readonly MemberRow[];
  /** Entries from other turns, oldest first; none whose sources the audience may not read. */
  readonly ephemeris: readonly EntryRow[];
  /** Sources of these entries, as `may_read` names them. */
  readonly entrySources: readonly RoomId[];
  /** Number of such entries, also of those before the first that is taken; no further back than is searched. */
  readonly ephemerisLines: number;
  readonly todos: readonly Todo[];
  readonly log: LogState | null;
  /** Begin of the conversation's turn before this one. */
  readonly lastTurnAt: Date | null;
  /** See `Rooms.mode`. */
  readonly mode: string | null;
  /** Something that was shown since the step `base` was redacted. */
  readonly wasEmptied: boolean;
  /** Number of edits and redactions of messages that the turn works on, since it began. */
  readonly changes: number;
  /** Words that were redacted since the turn began: it may remember them. */
  readonly redacted: readonly Fingerprint[];
  /** Working files that everybody who is here may read. */
  readonly state: readonly StateRow[];
  /** The agent keeps knowledge, whoever may read it. */
  readonly hasKnowledge: boolean;
  readonly desk: DeskRows;
}

/** A working file, with its end. */
interface StateRow extends FilePlace {
  readonly text: string;
  /** Characters of the whole. */
  readonly chars: number;
  /** Bytes of the whole. */
  readonly size: number;
  readonly isTainted: boolean;
  /** See `FileInfo`. */
  readonly sources: readonly RoomId[];
}

/** Characters of events, and of entries of the ephemeris, that stay in memory. */
const eventCharsKept = 4_000_000;
const entryCharsKept = 2_000_000;
/** Size of a row beside its text, about. */
const rowChars = 300;

/** Row that the query gives: of what is known already, only which pages are as they were. */
type SightRow = Omit<Seen, "events" | "ephemeris" | "desk"> & {
  readonly epoch: string;
  readonly proven: readonly Proven[];
  readonly newEvents: readonly Versioned<SeenEvent>[];
  readonly newEntries: readonly Versioned<EntryRow>[];
  readonly desk: readonly DeskItem[];
};

/** Reads what conversations may see. */
export class Sights {
  readonly #database: Database;
  readonly #events = new KnownRows<SeenEvent>(
    eventCharsKept,
    ({ content }) => rowChars + JSON.stringify(content).length,
  );
  readonly #entries = new KnownRows<EntryRow>(entryCharsKept, ({ entry }) => rowChars + entry.length);

  /** See `KnownPages`. */
  #epoch = "";

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Reads what a conversation may see, in one statement: walls are checked in it, before anything is taken, against
   * the audience of that moment; and an event that comes meanwhile is either waiting for a later turn or not there yet.
   * Of the conversation's own room nothing is seen from the first event on that waits, except what the agent said.
   * An event or an entry that has not changed since it was read before is the same object.
   */
  async see(look: Look): Promise<Seen> {
    const reader = `${look.agent} ${look.here}`;
    const events = this.#events.of(reader);
    const entries = this.#entries.of(reader, events.claims.length + 1);
    const known = { epoch: this.#epoch, claims: [...events.claims, ...entries.claims] };
    const [row] = await this.#database.run((sql) => sql<SightRow[]>`${sightQuery(sql, look, known)}`);
    if (!row) throw new Error("a query without a table gave no row");
    const { epoch, proven, newEvents, newEntries, desk, ...seen } = row;
    if (epoch !== this.#epoch) this.#forget(epoch);
    const sentEvents = newEvents.map((sent) => ({ ...sent, row: withDates(sent.row) }));
    const sentEntries = newEntries.map((sent) => ({ ...sent, row: { ...sent.row, at: new Date(sent.row.at) } }));
    const isEntry = ([claim]: Proven): boolean => claim > events.claims.length;
    return {
      ...seen,
      events: this.#events.give(
        reader,
        events,
        proven.filter((page) => !isEntry(page)),
        sentEvents,
      ),
      ephemeris: this.#entries.give(reader, entries, proven.filter(isEntry), sentEntries),
      desk: deskOf(desk),
    };
  }

  #forget(epoch: string): void {
    this.#epoch = epoch;
    this.#events.clear();
    this.#entries.clear();
  }
}

/** JSON carries times as texts. */
const withDates = (event: SeenEvent): SeenEvent => ({
  ...event,
  sentAt: new Date(event.sentAt),
  shownAt: new Date(event.shownAt),
  editedAt: event.editedAt === null ? null : new Date(event.editedAt),
});
