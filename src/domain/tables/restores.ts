import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { OutboxDraft } from "./outbox.ts";

/** Operations between the making of a copy and its return; of those that people were asked about, the numbers are read. */
const numbersLeftOut = 1_000;

/**
 * Parts of a statement, after `routed`: an event of ours that no row of the outbox has sent was sent after the copy of
 * the database was made that goes on now. Operations are then numbered from another thousand on: people may still name
 * those of that time. The last part, `renumbered`, has to be read.
 * @param key that the event has
 */
export const noticeRestore = (
  sql: Sql,
  { content, sentAt }: { readonly content: Readonly<Record<string, unknown>>; readonly sentAt: Date },
  key: string,
) => {
  const { "org.clevernet.operation": number } = content;
  const named = Number.isSafeInteger(number) ? Number(number) : 0;
  return sql`
    unknown as (
      select 1 from routed where not exists (select 1 from outbox where key = ${key})
    ), noticed as (
      insert into restores select now() from unknown
      where not exists (select 1 from restores where noticed_at >= ${sentAt}::timestamptz) on conflict do nothing returning 1
    ), numbered as (
      select pg_get_serial_sequence('operations', 'id') as sequence, greatest(${named}::bigint,
        coalesce(pg_sequence_last_value(pg_get_serial_sequence('operations', 'id')), 0)) as last, ${named}::bigint as named
      from unknown
    ), renumbered as (
      select setval(sequence, ((last + ${numbersLeftOut}) / 1000 + 1) * 1000) as number from numbered
      where exists (select 1 from noticed) or named > coalesce(pg_sequence_last_value(sequence), 0)
    )`;
};

/** Field of a message by which the bridge knows up to which event of its room it answers. */
const answersUntil = "org.clevernet.answers_until";

const isQuestion = ({ content }: OutboxDraft): boolean => "org.clevernet.operation" in (content as object);

/** Marks what a turn says in its room with the last event that it was woken for. A question to people is no answer. */
export const markAnswers = (
  drafts: readonly OutboxDraft[],
  { roomId }: { readonly roomId: RoomId },
  until: EventId | undefined,
): readonly OutboxDraft[] =>
  until === undefined
    ? drafts
    : drafts.map((draft) =>
        draft.kind === "message" && draft.roomId === roomId && !isQuestion(draft)
          ? { ...draft, content: { ...(draft.content as Readonly<Record<string, Json>>), [answersUntil]: until } }
          : draft,
      );

/**
 * A condition on an event `e`: it is a message of this user of ours, read or not, that no row of the outbox has sent, and
 * that answers what was said up to this place or a later one.
 */
export const isUnknownAnswer = (sql: Sql, userId: UserId, position: Fragment | number) => sql`
  e.sender = ${userId} and e.type in ('m.room.message', 'm.room.encrypted') and e.content ? ${answersUntil}
  and not exists (select 1 from outbox o where o.key = e.content->>'org.clevernet.key' and o.sender = e.sender)
  and exists (select 1 from events u where u.event_id = e.content->>${answersUntil} and u.position >= ${position})`;

/**
 * True if the agent has answered what a turn is about in a way that this database does not remember: it is an older copy
 * that goes on.
 */
export async function hasUnknownAnswer(
  database: Database,
  { id, roomId }: { readonly id: number; readonly roomId: RoomId },
  userId: UserId,
): Promise<boolean> {
  const rows = await database.run(
    (sql) => sql`
      with cause as (
        select coalesce((select max(position) from wakes where turn_id = t.id), t.place) as place from turns t where id = ${id}
      ), later as (
        select e.* from cause, events e where room_id = ${roomId} and e.position > cause.place and shown
        union all select e.* from cause, events e where room_id = ${roomId} and e.position > cause.place and not shown
      )
      select 1 from later e where ${isUnknownAnswer(sql, userId, sql`(select place from cause)`)} limit 1`,
  );
  return rows.length > 0;
}
