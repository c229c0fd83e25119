import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import { isStillHeld, type Proof } from "../../adapters/database/shards.ts";
import type { Conversation, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { type Hearing, mayHear } from "./hearing.ts";
import { askElsewhere, endUnasked } from "./operation-record.ts";

/**
 * `message` and `reaction` are room events with a frozen content; `file` is a text and `media` any file, uploaded first
 * (see `Uploads`); `join` and `leave` may carry a reason. A `draft` is a message that a `withdrawal` takes back, with its
 * edits: of the event that it relates to.
 */
type OutboxKind = "message" | "file" | "media" | "reaction" | "join" | "leave" | "profile" | "draft" | "withdrawal";

export interface OutboxDraft {
  /** Unique for the thing to send; transaction id towards the homeserver, and our content key in the event. */
  readonly key: string;
  readonly roomId: RoomId;
  readonly sender: UserId;
  readonly kind: OutboxKind;
  readonly content: Json;
  /** Key of an earlier row for the same room that this one relates to: the event's id is filled in when it is sent. */
  readonly about?: string | null | undefined;
  /** Events that its text shows: it is taken back with any of them, and not queued where one is redacted by now. */
  readonly shows?: readonly EventId[];
}

export interface OutboxRow extends OutboxDraft {
  readonly id: number;
  readonly attempts: number;
  /** The encrypted form, once it was made. */
  readonly wire: Readonly<Record<string, unknown>> | null;
  /** The first attempt may be longer ago than the homeserver remembers transaction ids. */
  readonly isForgotten: boolean;
}

/** Why a row is given up, and what follows. */
interface GivenUp {
  readonly error: string;
  /** Entry for the agent's ephemeris. */
  readonly told?: string;
  /** Messages to people that are sent instead. */
  readonly notice?: readonly OutboxDraft[];
  /** A question may be put elsewhere; otherwise what it asked for is refused. */
  readonly asksElsewhere?: boolean;
}

/** Drafts that a statement has queued, in order. */
export interface Queued {
  readonly drafts: readonly OutboxDraft[];
  /** Keys of those of them that were not there before. */
  readonly fresh: readonly string[];
  /** Keys of what waits before them in their rooms; null where that is much. */
  readonly before: readonly string[] | null;
}

/** Keys of a longer backlog are not read. */
const beforeMost = 20;

/**
 * Part of a statement: queues the given drafts, once for each row of the table or expression `once`.
 *
 * Their ids rise with the order in which statements begin to write, and rooms are sent in the order of ids. So what is
 * queued when something else has been queued is sent after it, in whichever processes. Of two statements at the same
 * moment the one that ends first may be sent first, whatever their ids: neither knew of the other.
 */
export const insertOutbox = (
  sql: Sql,
  drafts: readonly OutboxDraft[],
  once: string,
  turnId: number | null = null,
) => sql`
  insert into outbox (key, room_id, sender, kind, content, about, shows, turn_id)
  select o.key, o."roomId", o.sender, o.kind, o.content, o.about, o.shows, ${turnId}::bigint
  from ${sql(once)}, rows from (jsonb_to_recordset(${sql.json(drafts as unknown as Json)})
    as (key text, "roomId" text, sender text, kind text, content jsonb, about text, shows text[])) with ordinality
    as o(key, "roomId", sender, kind, content, about, shows, n)
  where o.shows is null or not exists (select 1 from events where event_id = any (o.shows) and redacted_at is not null)
  order by o.n
  on conflict (key) do nothing
  returning key`;

/** Part of a statement, columns of `Queued`: what `insertOutbox` has done in its table `sending`. */
export const queuedColumns = (sql: Sql, drafts: readonly OutboxDraft[]) => sql`
  (select coalesce(jsonb_agg(key), '[]') from sending) as fresh,
  (select case when count(*) <= ${beforeMost} then coalesce(jsonb_agg(key), '[]') end from (
    select key from outbox where state = 'pending' and room_id = any (${drafts.map(({ roomId }) => roomId)}::text[])
    order by id limit ${beforeMost + 1}) waiting) as before`;

interface ChainOrigin {
  readonly chain: string | null;
  readonly requester: UserId | null;
}

/** Homeservers keep transaction ids of a device for 24 hours; an hour of that is left as a margin. */
const remembered = "23 hours";

export class Outbox {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** `turnId`: what follows from a turn that is at work. */
  async add(drafts: readonly OutboxDraft[], turnId: number | null = null): Promise<void> {
    await this.#database.run((sql) => sql`with once as (select 1) ${insertOutbox(sql, drafts, "once", turnId)}`);
  }

  /** Adds what follows from a turn, or from a command, if everybody may hear it who does. Returns whether they may. */
  async addHeard(drafts: readonly OutboxDraft[], turnId: number | null, hearing: Hearing): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ may: boolean }[]>`
        with heard as (select 1 where ${mayHear(sql, hearing)}), sending as (${insertOutbox(sql, drafts, "heard", turnId)})
        select exists (select 1 from heard) as may`,
    );
    return row?.may ?? false;
  }

  /** True if there is a row with this key, whatever has become of it. */
  async has(key: string): Promise<boolean> {
    return (await this.#database.run((sql) => sql`select 1 from outbox where key = ${key}`)).length > 0;
  }

  async findRoomsWithPending(): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`select distinct room_id as "roomId" from outbox where state = 'pending'`,
    );
    return rows.map((row) => row.roomId);
  }

  /** The last row that waits in each room. */
  async findLastPending(): Promise<Map<RoomId, number>> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId; id: number }[]>`
        select room_id as "roomId", max(id) as id from outbox where state = 'pending' group by room_id`,
    );
    return new Map(rows.map(({ roomId, id }) => [roomId, id]));
  }

  /**
   * Takes rows that wait to be sent into the room, oldest first, but for those that the homeserver has by now:
   * `except`. Marks them as being tried; takes nothing where `proof` is void by now.
   */
  take(roomId: RoomId, limit: number, proof?: Proof, except: readonly string[] = []): Promise<OutboxRow[]> {
    return this.#database.run(
      (sql) => sql<OutboxRow[]>`
        with tried as (
          update outbox set attempts = attempts + 1
          where id in (
              select id from outbox where room_id = ${roomId} and state = 'pending' and key <> all (${[...except]}::text[])
              order by id limit ${limit})
            ${proof ? sql`and ${isStillHeld(sql, proof)}` : sql``}
          returning *
        )
        select id, key, room_id as "roomId", sender, kind, content, about, attempts, wire,
          created_at < now() - ${remembered}::interval as "isForgotten"
        from tried order by id`,
    );
  }

  /** Keeps the encrypted form of a row, unless it has one. Returns the one that it has: what is sent. */
  async freeze(key: string, wire: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const [row] = await this.#database.run(
      (sql) => sql<{ wire: Record<string, unknown> }[]>`
        update outbox set wire = coalesce(wire, ${sql.json(wire as Json)}) where key = ${key} returning wire`,
    );
    if (!row) throw new Error(`the row ${key} of the outbox is gone`);
    return row.wire;
  }

  /** The homeserver has these rows, and made of them these events. */
  async sent(rows: readonly { readonly key: string; readonly eventId: EventId | undefined }[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update outbox set state = 'sent', event_id = coalesce(s."eventId", event_id), wire = null, settled_at = now()
        from jsonb_to_recordset(${sql.json(rows as unknown as Json)}) as s(key text, "eventId" text)
        where outbox.key = s.key and state = 'pending'`,
    );
  }

  /** The event that the room's row with this key has become; undefined where it was given up. */
  async eventOf(roomId: RoomId, key: string): Promise<EventId | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ eventId: EventId | null }[]>`
        select event_id as "eventId" from outbox where key = ${key} and room_id = ${roomId} and state = 'sent'`,
    );
    return row?.eventId ?? undefined;
  }

  /**
   * Gives up for good. Returns the conversations that waited for people to answer the row, and go on without.
   */
  async giveUp(row: OutboxDraft, givenUp: GivenUp): Promise<Conversation[]> {
    const { error, told = null, notice = [], asksElsewhere = false } = givenUp;
    const unasked = `the homeserver refuses to take the question to people: ${error}`;
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        with given_up as (
          update outbox set state = 'failed', error = ${error}, settled_at = now()
          where key = ${row.key} and state = 'pending' returning id, key, room_id, turn_id, sender
        ), ${asksElsewhere ? askElsewhere(sql, "given_up") : endUnasked(sql, "given_up", unasked)}, told as (
          insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
          select sender, room_id, turn_id, -id, 1, ${told}, array[room_id] from given_up
          where turn_id is not null and ${told}::text is not null
          on conflict do nothing
        ), noticed as (${insertOutbox(sql, notice, "given_up")})
        select agent, room_id as "roomId" from unasked`,
    );
  }

  /** Finds the event of the row that has come back as an echo, whatever we believe about the sending. */
  async echoOf(row: OutboxDraft): Promise<EventId | undefined> {
    const [found] = await this.#database.run(
      (sql) => sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from events
        where room_id = ${row.roomId} and sender = ${row.sender} and content->>'org.clevernet.key' = ${row.key} limit 1`,
    );
    return found?.eventId;
  }

  /** Finds the keys that events in the room have. */
  async echoesOf(roomId: RoomId, keys: readonly string[]): Promise<Set<string>> {
    const rows = await this.#database.run(
      (sql) => sql<{ key: string }[]>`
        select content->>'org.clevernet.key' as key from events
        where room_id = ${roomId} and content->>'org.clevernet.key' = any (${[...keys]}::text[])`,
    );
    return new Set(rows.map(({ key }) => key));
  }

  /** The chain to which the turn belongs that sent an event; `requester`: for whom the wake acted that began it, if one did. */
  async originOf(key: string, sender: UserId): Promise<ChainOrigin | undefined> {
    const [found] = await this.#database.run(
      (sql) => sql<ChainOrigin[]>`
        select t.chain, w.requester from outbox o join turns t on t.id = o.turn_id left join wakes w on w.key = t.chain
        where o.key = ${key} and o.sender = ${sender}`,
    );
    return found;
  }
}
