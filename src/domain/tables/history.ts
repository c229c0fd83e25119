import type { Database } from "../../adapters/database/connection.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";

/** An entry of an agent's ephemeris that its thoughts room has not been shown. */
interface UntoldThought {
  readonly id: number;
  readonly entry: string;
  readonly subAgent: string | null;
  /** True if it comes from an encrypted room. The bot writes in no such room: it is shown nowhere. */
  readonly isSealed: boolean;
  /** True if it is the first of its turn. */
  readonly opensTurn: boolean;
}

/** Reads who may see what was shown, and what an agent has thought. */
export class History {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Finds the people who see what is said there, as `audience_of` names them, for an agent of this owner. */
  async audience(roomId: RoomId, owner: UserId): Promise<UserId[]> {
    const [row] = await this.#database.run(
      (sql) => sql<{ audience: UserId[] }[]>`select audience_of(${roomId}, ${owner}) as audience`,
    );
    return row?.audience ?? [];
  }

  /**
   * Tells if everybody in the audience may read all of the sources.
   * @param place what was made of them then; without it, what they are now
   */
  async mayReadAll(
    audience: readonly UserId[],
    sources: readonly RoomId[],
    owner: UserId,
    place: number = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isAllowed: boolean }[]>`
        select coalesce(bool_and(may_read(${[...audience]}, s, ${owner}) and not is_unseen(${[...audience]}, s, ${place}::float8)), true) as "isAllowed"
        from unnest(${[...sources]}::text[]) as s`,
    );
    return row?.isAllowed ?? false;
  }

  /** Thoughts and calls that the agent's thoughts room has not been shown, oldest first. */
  findUntold(agent: AgentName, limit: number): Promise<UntoldThought[]> {
    return this.#database.run(
      (sql) => sql<UntoldThought[]>`
        select e.id, e.entry, e.sub_agent as "subAgent",
          is_encrypted(e.room_id) as "isSealed",
          not exists (select 1 from ephemeris before where before.turn_id = e.turn_id and before.id < e.id) as "opensTurn"
        from ephemeris e join agents a on a.user_id = e.user_id
        where a.name = ${agent} and e.id > a.thoughts_posted order by e.id limit ${limit}`,
    );
  }

  /**
   * Queues what the thoughts room is told, and remembers that it was: the entries `from` to `upTo`. Returns
   * false, and does nothing, where another process has told some of them.
   */
  async tell(agent: AgentName, from: number, upTo: number, drafts: readonly OutboxDraft[]): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ wasTold: boolean }[]>`
        with told as (
          update agents set thoughts_posted = ${upTo} where name = ${agent} and thoughts_posted < ${from} returning name
        ), sending as (
          ${insertOutbox(sql, drafts, "told")}
        )
        select exists (select 1 from told) as "wasTold"`,
    );
    return row?.wasTold ?? false;
  }
}
