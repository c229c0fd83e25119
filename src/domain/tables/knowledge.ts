import type { Database } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId } from "../../base/lib/ids.ts";

/** Origin of knowledge, and the people who may hear of it. */
export interface KnowledgeOrigin {
  readonly agent: AgentName;
  /** A room, a user, or '' for the agent's home, as `may_read` takes it; null where there is no wall. */
  readonly wall: RoomId | null;
  readonly eventId: EventId | null;
}

/** Knowledge of agents, an entry per source. */
export class Knowledge {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Keeps texts by their sources, each in place of what the agent has from that source.
   * @param inPlaceOf whatever else the agent has from sources that begin so is forgotten
   */
  async keep(entries: ReadonlyMap<string, string>, origin: KnowledgeOrigin, inPlaceOf?: string): Promise<void> {
    const { agent, wall, eventId } = origin;
    const sources = [...entries.keys()];
    await this.#database.run(
      (sql) => sql`
        with outdated as (
          delete from knowledge where agent = ${agent} and starts_with(source, ${inPlaceOf ?? null}) and source <> all (${sources}::text[])
        )
        insert into knowledge (agent, source, text, wall, event_id)
        select ${agent}, source, text, ${wall}, ${eventId} from unnest(${sources}::text[], ${[...entries.values()]}::text[]) as e (source, text)
        on conflict (agent, source) do update set text = excluded.text, wall = excluded.wall, event_id = excluded.event_id, created_at = now()`,
    );
  }
}
