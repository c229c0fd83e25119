import type { Database } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { type KnowledgeEntry, type KnowledgeOrigin, keepRows, rowsOf, storedRows } from "./knowledge.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";

/** Entry that an agent would keep, if people want it. */
interface OfferDraft {
  /** Key of the message that asks. */
  readonly key: string;
  readonly roomId: RoomId;
  readonly entry: KnowledgeEntry;
  readonly origin: KnowledgeOrigin;
}

/** Question that nobody has answered yet. */
export interface KnowledgeOffer {
  readonly key: string;
  readonly agent: AgentName;
  readonly sender: UserId;
  readonly roomId: RoomId;
  readonly source: string;
}

/** Time in which a question can be answered; as long as one for an approval. */
const answeredWithin = "1 day";

/** Questions to people if an agent shall keep something. A ✅ below one answers it. */
export class KnowledgeOffers {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Writes what is offered. Returns its text: that of the first time, where the operation is run again. */
  async add({ key, roomId, entry, origin }: OfferDraft): Promise<string> {
    const [row] = await this.#database.run(
      (sql) => sql<{ text: string }[]>`
        with made as (
          insert into knowledge_offers (key, agent, room_id, event_id, entry)
          values (${key}, ${origin.agent}, ${roomId}, ${origin.eventId}, ${sql.json(storedRows([entry], origin))})
          on conflict (key) do nothing returning entry
        )
        select entry->0->>'text' as text from (
          select entry from made union all select entry from knowledge_offers where key = ${key}) e`,
    );
    return row?.text ?? entry.text;
  }

  /** Finds the question that a message asks, if it can still be answered. */
  async asked(eventId: EventId): Promise<KnowledgeOffer | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<KnowledgeOffer[]>`
        select k.key, k.agent, o.sender, k.room_id as "roomId", k.entry->0->>'source' as source
        from knowledge_offers k join outbox o on o.key = k.key join agents a on a.name = k.agent
        where o.event_id = ${eventId} and k.kept_by is null and a.deleted_at is null
          and k.created_at > now() - ${answeredWithin}::interval`,
    );
    return row;
  }

  /** Keeps what is offered, once. Returns whether it was still there. */
  async keep(key: string, by: UserId, told: readonly OutboxDraft[]): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isKept: boolean }[]>`
        with taken as (
          update knowledge_offers set kept_by = ${by} where key = ${key} and kept_by is null returning entry
        ), ${keepRows(sql, sql`select r.* from taken, ${rowsOf(sql, sql`taken.entry`)}`)}, told as (
          ${insertOutbox(sql, told, "taken")}
        )
        select exists (select 1 from taken) as "isKept"`,
    );
    return row?.isKept ?? false;
  }

  /** Forgets questions that cannot be answered any more. */
  async forgetOld(): Promise<void> {
    await this.#database.run(
      (sql) => sql`delete from knowledge_offers where created_at < now() - ${answeredWithin}::interval`,
    );
  }
}
