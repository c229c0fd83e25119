import type { Database, Json } from "../../adapters/database/connection.ts";
import type { ServerDefinition } from "../../adapters/mcp/definition.ts";

/** A tool of a server, as its definition was accepted, and as the server gave it last. */
export interface ServerToolRow {
  readonly server: string;
  readonly name: string;
  /** Null: nobody has accepted a definition yet. */
  readonly accepted: ServerDefinition | null;
  /** Null: the server has no such tool any more. */
  readonly seen: ServerDefinition | null;
  /** True if the server gave the accepted definition last. */
  readonly isOffered: boolean;
}

/** Definitions of the tools of servers. */
export class ServerTools {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  all(servers: readonly string[]): Promise<ServerToolRow[]> {
    return this.#database.run(
      (sql) => sql<ServerToolRow[]>`
        select server, name, accepted, seen, coalesce(accepted = seen, false) as "isOffered" from server_tools
        where server = any (${[...servers]}::text[]) order by server, name`,
    );
  }

  /**
   * Keeps the definitions that a server gives now. The first that it ever gives are accepted by that: an operator has
   * just written the server into the configuration. Returns true if anything is another than before.
   */
  async see(server: string, tools: ReadonlyMap<string, ServerDefinition>): Promise<boolean> {
    const given = Object.fromEntries(tools) as unknown as Json;
    const rows = await this.#database.run(
      (sql) => sql<{ name: string }[]>`
        with given as (select key as name, value as definition from jsonb_each(${sql.json(given)}::jsonb)),
        written as (
          insert into server_tools as t (server, name, accepted, seen)
          select ${server}, name,
            case when exists (select 1 from server_tools where server = ${server}) then null else definition end, definition
          from given
          on conflict (server, name) do update set seen = excluded.seen where t.seen is distinct from excluded.seen
          returning name
        ),
        gone as (
          update server_tools set seen = null
          where server = ${server} and seen is not null and name not in (select name from given)
          returning name
        )
        select name from written union all select name from gone`,
    );
    return rows.length > 0;
  }

  /** Accepts these definitions, as far as the server still gives them. Returns the names. */
  async accept(server: string, tools: ReadonlyMap<string, ServerDefinition>): Promise<string[]> {
    const given = Object.fromEntries(tools) as unknown as Json;
    const rows = await this.#database.run(
      (sql) => sql<{ name: string }[]>`
        update server_tools t set accepted = g.value from jsonb_each(${sql.json(given)}::jsonb) g
        where t.server = ${server} and t.name = g.key and t.seen = g.value returning t.name`,
    );
    return rows.map(({ name }) => name).sort();
  }
}
