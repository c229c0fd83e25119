import type { Json, Sql } from "../../adapters/database/connection.ts";
import type { Claim } from "./row-cache.ts";

/** Source of the entries of the ephemeris, beside the rooms that are the sources of events. */
export const ephemerisSource = "ephemeris";

/** Rows that the reader has in memory: those of a page that is as it was are not read again. */
export interface KnownPages {
  /** Start of the server of which they were read: another may be an older copy, in which versions come again. */
  readonly epoch: string;
  readonly claims: readonly Claim[];
}

/** Version of a row of a table: a hash that is another one after every change, and for every other row. */
export const versionOf = (sql: Sql, table: string, id: "id" | "seq") =>
  sql`hashtextextended(${sql(table)}.xmin::text, ${sql(table)}.${sql(id)})`;

/**
 * CTEs by which a look reads only what its reader does not have, behind the CTEs `newest` and `thoughts`, which have
 * decided what may be seen: `proven`, the pages that need not be read, and `unknown`, all other rows.
 */
export const pageCtes = (sql: Sql, known: KnownPages) => sql`
  ${claimedPages(sql, known)}, ${pagedRows(sql)}, ${provenPages(sql)}, ${unknownRows(sql)}`;

/** Tells servers apart, and the runs of one. */
export const epochNow = (sql: Sql) => sql`(select coalesce(pg_postmaster_start_time()::text, ''))`;

/** CTE `claimed`: pages of rows that the reader has; none where it has them of another server. */
const claimedPages = (sql: Sql, { epoch, claims }: KnownPages) => sql`
  claimed as materialized (
    select source, n, last, firsts, versions, open
    from jsonb_to_recordset(${sql.json(claims as unknown as Json)})
      as c(source text, n integer, last float8, firsts float8[], versions bigint[], open bigint[])
    where ${epochNow(sql)} = ${epoch}
  )`;

/** CTE `paged`: all rows that may be seen, with the claim and the page in which the reader would have each. */
const pagedRows = (sql: Sql) => sql`
  paged as materialized (
    select found.*, n, page, versions[page] as claim
    from (
      select room_id as source, seq as id, position as place, version from newest
      union all select ${ephemerisSource}, id, id, version from thoughts
    ) found left join claimed using (source), lateral (
      select case when place <= last and id <> all (open) then width_bucket(place, firsts) end as page) p
  )`;

/** CTE `proven`: pages with exactly the rows that the reader has, none of them changed. */
const provenPages = (sql: Sql) => sql`
  proven as materialized (
    select n, page from paged where page > 0 group by n, page, claim having bit_xor(version) = claim
  )`;

/** CTE `unknown`: all other rows. */
const unknownRows = (sql: Sql) => sql`
  unknown as materialized (
    select source, id, place, version::text from paged
    where not exists (select 1 from proven where proven.n = paged.n and proven.page = paged.page)
  )`;
