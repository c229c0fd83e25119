import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** A query that gives what a room is called, and who has said so; nothing where it has no name. */
export const roomNaming = (sql: Sql, roomId: RoomId | Fragment) => sql`
  select coalesce(content->>'name', content->>'alias') as name, sender from room_state
  where room_id = ${roomId} and ((type = 'm.room.name' and content->>'name' <> '')
    or (type = 'm.room.canonical_alias' and content->>'alias' <> ''))
  order by type = 'm.room.name' desc limit 1`;

/** Room in which somebody works, and the people for whom. */
export interface Surroundings {
  /** '' where the room has none, and at home. */
  readonly roomName: string;
  /** User who has set it. */
  readonly namedBy: UserId | null;
  readonly people: readonly { readonly userId: UserId; readonly displayName: string | null }[];
}

/** A room's name, and what these people are called in it. */
export async function surroundings(
  database: Database,
  roomId: RoomId,
  userIds: readonly UserId[],
): Promise<Surroundings> {
  const rows = await database.run(
    (sql) => sql<{ userId: UserId; displayName: string | null; name: string | null; namedBy: UserId | null }[]>`
      select u as "userId", m.display_name as "displayName", naming.name, naming.sender as "namedBy"
      from unnest(${[...userIds]}::text[]) u left join members m on m.room_id = ${roomId} and m.user_id = u
        left join (${roomNaming(sql, roomId)}) naming on true`,
  );
  return {
    roomName: rows[0]?.name ?? "",
    namedBy: rows[0]?.namedBy ?? null,
    people: rows.map(({ userId, displayName }) => ({ userId, displayName })),
  };
}

/** A user, with a name under which others know them. */
export interface KnownName {
  readonly userId: UserId;
  readonly displayName: string | null;
}

/** People in a room together with an agent; beyond this number some are left out. */
const peopleMost = 2_000;

/** Reads the names of everybody who is, or was, in a room in which the agent is. */
export const namesAround = (database: Database, userId: UserId): Promise<KnownName[]> =>
  database.run(
    (sql) => sql<KnownName[]>`
      select distinct m.user_id as "userId", m.display_name as "displayName"
      from members mine join members m using (room_id)
      where mine.user_id = ${userId} and mine.membership = 'join' limit ${peopleMost}`,
  );
