import type { Database, Json } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** Knows who may come into rooms: those that we were in before this was kept, and our own. */
export class JoinRules {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Rooms that the user is in, whose rules for joining were not read yet. */
  async findUnread(userId: UserId): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        select m.room_id as "roomId" from members m join room_state s using (room_id)
        where m.user_id = ${userId} and m.membership = 'join' and s.type = 'm.room.join_rules' and s.position < 0`,
    );
    return rows.map((row) => row.roomId);
  }

  /** Keeps the rules for joining as they were read, unless we were told of newer ones meanwhile. */
  async keep(roomId: RoomId, content: Json, sender: UserId): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update room_state set content = ${sql.json(content)}, sender = ${sender}, position = 0
        where room_id = ${roomId} and type = 'm.room.join_rules' and position < 0`,
    );
  }

  /** Agents' thoughts rooms in which it is not known that whoever invites needs this power. */
  async findLooseRooms(level: number): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        select a.thoughts_room as "roomId" from agents a
        where a.thoughts_room is not null and a.deleted_at is null and not exists (
          select 1 from room_state s where s.room_id = a.thoughts_room and s.type = 'm.room.power_levels'
            and jsonb_typeof(s.content->'invite') = 'number' and s.content->'invite' >= to_jsonb(${level}::int))`,
    );
    return rows.map((row) => row.roomId);
  }
}
