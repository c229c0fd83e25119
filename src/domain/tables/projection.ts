import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import type { StoredEvent } from "./events.ts";

export interface MemberChange {
  readonly userId: UserId;
  readonly membership: string;
  readonly displayName: string | undefined;
  readonly isDirect: boolean;
  readonly kind: "human" | "agent" | "bot";
}

interface StateChange {
  readonly type: string;
  readonly content: Json;
  readonly sender: UserId;
}

export const visibilityType = "m.room.history_visibility";

/** True if newcomers may not read what was said before they came, by the content of a `visibilityType`. */
export const isClosed = (content: unknown): boolean =>
  isObject(content) && (content.history_visibility === "joined" || content.history_visibility === "invited");

/** Changes that routing an event makes in what is known of its room. */
export interface Projection {
  /** The event is part of what agents see as history; this many characters of it. */
  readonly shownChars?: number;
  readonly member?: MemberChange;
  readonly state?: StateChange;
}

export interface Projected {
  readonly event: Pick<StoredEvent, "seq" | "position">;
  readonly effects: Projection;
}

/**
 * Part of a statement, beginning with a comma: what events of a room change in what is known of it. No two of them may
 * change the same member, or state of the same type.
 * @param routed the CTE with seq and received_at of those that are routed now
 */
export const insertProjections = (sql: Sql, roomId: RoomId, projected: readonly Projected[], routed: string) => {
  const shown: { seq: number; chars: number }[] = [];
  const members: object[] = [];
  const states: object[] = [];
  const visibilities: object[] = [];
  for (const { event, effects } of projected) {
    const { seq, position } = event;
    if (effects.shownChars !== undefined) shown.push({ seq, chars: effects.shownChars });
    if (effects.member) members.push({ ...effects.member, seq, position });
    if (!effects.state) continue;
    states.push({ ...effects.state, seq, position });
    if (effects.state.type === visibilityType)
      visibilities.push({ isClosed: isClosed(effects.state.content), seq, position });
  }
  const rows = (list: readonly object[]) => sql`jsonb_to_recordset(${sql.json(list as unknown as Json)})`;
  return [
    shown.length > 0 &&
      sql`, room as (
        insert into rooms (room_id, shown_events, shown_chars, last_shown_at)
        select ${roomId}, count(*), sum(s.chars), max(r.received_at)
        from ${sql(routed)} r join ${rows(shown)} as s(seq bigint, chars bigint) on s.seq = r.seq
        having count(*) > 0
        on conflict (room_id) do update set shown_events = rooms.shown_events + excluded.shown_events,
          shown_chars = rooms.shown_chars + excluded.shown_chars,
          last_shown_at = excluded.last_shown_at
      )`,
    members.length > 0 &&
      sql`, member as (
        insert into members (room_id, user_id, membership, display_name, direct, kind, position, joined_position)
        select ${roomId}, m."userId", m.membership, m."displayName", m."isDirect", m.kind, m.position, m.position
        from ${sql(routed)} r join ${rows(members)} as m(seq bigint, position float8, "userId" text, membership text,
          "displayName" text, "isDirect" boolean, kind text) on m.seq = r.seq
        on conflict (room_id, user_id) do update set membership = excluded.membership,
          display_name = excluded.display_name, direct = members.direct or excluded.direct, position = excluded.position,
          joined_position = case when members.membership = 'join' and excluded.membership = 'join'
            then members.joined_position else excluded.position end
        where excluded.position >= members.position
      )`,
    visibilities.length > 0 &&
      sql`, visibility as (
        insert into history_visibility (room_id, position, closed)
        select ${roomId}, v.position, v."isClosed"
        from ${sql(routed)} r join ${rows(visibilities)} as v(seq bigint, position float8, "isClosed" boolean) on v.seq = r.seq
        on conflict (room_id, position) do update set closed = excluded.closed
      )`,
    states.length > 0 &&
      sql`, state as (
        insert into room_state (room_id, type, content, sender, position)
        select ${roomId}, s.type, s.content, s.sender, s.position
        from ${sql(routed)} r join ${rows(states)} as s(seq bigint, position float8, type text, content jsonb, sender text)
          on s.seq = r.seq
        on conflict (room_id, type) do update set content = excluded.content, sender = excluded.sender, position = excluded.position
        where excluded.position >= room_state.position
      )`,
  ].filter((part) => part !== false);
};

/**
 * Marks events of a room as routed from which nothing follows but what they change in it, in one statement. A second
 * call changes nothing. See `insertProjections`.
 */
export async function settleProjections(
  database: Database,
  roomId: RoomId,
  projected: readonly Projected[],
): Promise<void> {
  let numbered = 0;
  const routed = projected.map(({ event: { seq }, effects: { shownChars } }) => {
    const isShown = shownChars !== undefined;
    return { seq, isShown, next: isShown ? ++numbered : null };
  });
  await database.run(
    (sql) => sql`
      with routed as (
        update events e set routed_at = now(), shown = g."isShown", number = (select last_number(${roomId})) + g.next
        from jsonb_to_recordset(${sql.json(routed)}) as g(seq bigint, "isShown" boolean, next bigint)
        where e.seq = g.seq and e.routed_at is null returning e.seq, e.received_at
      )${insertProjections(sql, roomId, projected, "routed")}
      select 1 from routed limit 1`,
  );
}
