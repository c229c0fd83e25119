import type { Fragment, Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

interface RoomAgent {
  readonly userId: UserId;
  readonly membership: "join" | "invite";
  readonly isDirect: boolean;
  /** Place in the room's history at which it came. */
  readonly since: number | null;
}

/** Facts that the router has to know of a room before it can judge an event in it. */
export interface RoomContext {
  readonly kind: "chat" | "thoughts" | "control";
  /** Content of the state events that are kept, by type. */
  readonly state: Readonly<Record<string, Record<string, unknown>>>;
  readonly agents: readonly RoomAgent[];
  readonly humans: number;
  readonly hasBotJoined: boolean;
  /** Stand above all power levels: those who made the room, from version 12 on. */
  readonly creators: readonly UserId[];
}

/** Part of a statement: the columns of a `RoomContext`. `roomId` may also be a column. */
export const contextColumns = (sql: Sql, roomId: RoomId | Fragment) => sql`
  coalesce((select kind from rooms where room_id = ${roomId}), 'chat') as kind,
  coalesce((select jsonb_object_agg(type, content) from room_state where room_id = ${roomId}), '{}') as state,
  coalesce((select jsonb_agg(jsonb_build_object('userId', user_id, 'membership', membership, 'isDirect', direct, 'since', joined_position) order by user_id)
    from members where room_id = ${roomId} and kind = 'agent' and membership in ('join', 'invite')), '[]') as agents,
  (select count(*) from members where room_id = ${roomId} and kind = 'human' and membership = 'join') as humans,
  exists (select 1 from members where room_id = ${roomId} and kind = 'bot' and membership = 'join') as "hasBotJoined",
  to_jsonb(room_creators(${roomId})) as creators`;
