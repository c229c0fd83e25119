import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { visibilityType } from "./projection.ts";

/** A room as whoever encrypts something for it has to know it. */
export interface RoomSecrecy {
  /** Members and invited users: all who may read. */
  readonly readers: readonly UserId[];
  readonly visibility: string | null;
  /** Content of its `m.room.encryption`. */
  readonly encryption: Readonly<Record<string, unknown>>;
}

/** The one way of encrypting rooms that there is; a room whose state names none is taken for one of this. */
export const megolm = "m.megolm.v1.aes-sha2";

/** True if the room is encrypted, or ever was, by what the homeserver has told so far, routed or not. */
export async function isEncrypted(database: Database, roomId: RoomId): Promise<boolean> {
  const [row] = await database.run(
    (sql) => sql<{ isEncrypted: boolean }[]>`select is_encrypted(${roomId}) as "isEncrypted"`,
  );
  return row?.isEncrypted ?? false;
}

/** True if the room is encrypted in a way that nobody of ours knows. */
export async function isUnwritable(database: Database, roomId: RoomId): Promise<boolean> {
  const rows = await database.run(
    (sql) => sql`
      select 1 from room_state
      where room_id = ${roomId} and type = 'm.room.encryption' and content->>'algorithm' <> ${megolm}
      union all
      select 1 from events
      where room_id = ${roomId} and routed_at is null and type = 'm.room.encryption' and state_key = ''
        and content->>'algorithm' <> ${megolm} limit 1`,
  );
  return rows.length > 0;
}

/** Reads who is to be given the keys of what is said in the room now: newcomers too whose coming is not routed yet. */
export async function secrecyOf(database: Database, roomId: RoomId): Promise<RoomSecrecy> {
  const [row] = await database.run(
    (sql) => sql<RoomSecrecy[]>`
      select
        coalesce((select jsonb_agg(user_id) from (
          select user_id from members where room_id = ${roomId} and membership in ('join', 'invite')
          union
          select state_key from events
          where room_id = ${roomId} and routed_at is null and type = 'm.room.member'
            and content->>'membership' in ('join', 'invite')
        ) readers), '[]') as readers,
        (select content->>'history_visibility' from room_state
          where room_id = ${roomId} and type = ${visibilityType}) as visibility,
        coalesce((select content from room_state where room_id = ${roomId} and type = 'm.room.encryption'), '{}') as encryption`,
  );
  if (!row) throw new Error("a query without a table gave no row");
  return row;
}
