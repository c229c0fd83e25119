import type { Database, Sql } from "../../adapters/database/connection.ts";
import { type Conversation, digest } from "../../base/lib/ids.ts";
import { addressForm, isWrittenIn } from "../../base/lib/web-address.ts";

/** Newest messages of a room that are searched for an address. */
const messagesMost = 5_000;
const daysKept = 90;

const digestOf = (address: string): string => digest("address", address);

/** Keeps the addresses, in the form of `addressForm`, as read in the conversation; those read long ago go. */
export const keepAddresses = (sql: Sql, { agent, roomId }: Conversation, addresses: readonly string[]) => sql`
  with gone as (
    delete from web_addresses where agent = ${agent} and room_id = ${roomId}
      and seen_at < now() - make_interval(days => ${daysKept}) and digest <> all (${addresses.map(digestOf)})
  )
  insert into web_addresses (agent, room_id, digest)
  select ${agent}, ${roomId}, digest from unnest(${addresses.map(digestOf)}::text[]) digest
  on conflict (agent, room_id, digest) do update set seen_at = excluded.seen_at`;

/** Tells where an address that an agent wants to open comes from. */
export class WebAddresses {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * True if it stands word for word in what a person has written in this room, quotations left out, or in a page or in
   * results of a search that the agent has read in this conversation. An address that it has made up itself may carry what
   * it knows.
   */
  async isKnown({ agent, roomId }: Conversation, address: string): Promise<boolean> {
    const form = addressForm(address);
    if (form === undefined) return false;
    const { host } = new URL(form);
    const [row] = await this.#database.run(
      (sql) => sql<{ isRead: boolean; bodies: string[] }[]>`
        select exists (
          select 1 from web_addresses where agent = ${agent} and room_id = ${roomId} and digest = ${digestOf(form)}
        ) as "isRead", coalesce((
          select jsonb_agg(body) from (
            select left(body, 65536) as body from (
              select sender, content->>'msgtype' as msgtype,
                -- The body of an edit is a fallback, which may quote others.
                coalesce(content->'m.new_content'->>'body', content->>'body') as body
              from events
              where room_id = ${roomId} and shown and type = 'm.room.message' and redacted_at is null
              order by position desc limit ${messagesMost}
            ) newest join members on members.room_id = ${roomId} and members.user_id = newest.sender and members.kind = 'human'
            where coalesce(msgtype, '') <> 'm.notice' and strpos(lower(body), ${host}) > 0
            limit 100
          ) written
        ), '[]') as bodies`,
    );
    return row !== undefined && (row.isRead || row.bodies.some((body) => isWrittenIn(form, body)));
  }
}
