import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";

/** Somebody who wants to see what an agent knows: from which conversation, for whom. */
export interface KnowledgeReader {
  readonly agent: AgentName;
  readonly userId: UserId;
  readonly owner: UserId;
  readonly here: RoomId;
  /** People for whom it is done: they may read it all, as everybody in the conversation may. */
  readonly requesters: readonly UserId[];
  /** All of them have the right to `use`, which files need that define agents. */
  readonly uses: boolean;
}

/** Question to the knowledge. */
export interface KnowledgeSought {
  readonly text: string;
  /** Vector of the text, and the model that made it; without one, words alone decide. */
  readonly vector?: { readonly model: string; readonly numbers: readonly number[] } | undefined;
  readonly limit: number;
  /** Beginning of the source. */
  readonly sourcePrefix?: string | undefined;
  /** Only of these files. */
  readonly files?: { readonly share: string; readonly paths: readonly string[] } | undefined;
  /** Least score of what is found. */
  readonly scoreLeast?: number | undefined;
}

/** Entry that was found. */
export interface Passage {
  readonly source: string;
  readonly title: string;
  readonly share: string | null;
  readonly path: string | null;
  readonly firstLine: number | null;
  readonly lastLine: number | null;
  readonly text: string;
  /** From 0 to 1. */
  readonly score: number;
  /** The file has changed since. */
  readonly isOutdated: boolean;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  readonly at: Date;
}

/** Sources that begin alike: all entries of one file or page, one text of a person. */
export interface SourceGroup {
  readonly prefix: string;
  readonly entries: number;
  readonly characters: number;
  /** Of them, those that have no vectors yet, and will have. */
  readonly waiting: number;
  /** Of a file: it is as it was, has changed since, or was deleted. */
  readonly state: "current" | "outdated" | "gone";
  readonly at: Date;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
}

/** Candidates of each kind. */
const candidates = 50;
const weights = { meaning: 0.5, words: 0.5 };

/** Finds what fits best, in one statement, the best first. Its CTEs decide the walls before anything is compared. */
export const findPassages = (database: Database, who: KnowledgeReader, sought: KnowledgeSought): Promise<Passage[]> =>
  database.run(
    (sql) => sql<Passage[]>`
      with ${openEntries(sql, who)}, ${soughtEntries(sql, sought)}, ${askedWords(sql, sought)}, ${byWords(sql)},
        ${byMeaning(sql, sought)}, ${scored(sql, sought)}
      select source, title, share, path, first_line as "firstLine", last_line as "lastLine", text, fit as score,
        state <> 'current' as "isOutdated", sources, taint, created_at as at
      from scored where fit > 0 and fit >= ${sought.scoreLeast ?? 0}::float8
      order by fit desc, id limit ${sought.limit}`,
  );

/** Lists what there is, by the beginnings of its sources, in their order. */
export const listSources = async (database: Database, who: KnowledgeReader): Promise<SourceGroup[]> => {
  const rows = await database.run(
    (sql) => sql<(Omit<SourceGroup, "sources" | "taint"> & { sources: RoomId[][]; taint: string[][] })[]>`
      with ${openEntries(sql, who)}
      select prefix, count(*)::int as entries, sum(length(text))::int as characters,
        (count(*) filter (where exists (
          select 1 from knowledge_to_embed q where q.knowledge_id = open.id)
          and exists (select 1 from embedding_models where is_present)))::int as waiting,
        case when bool_or(state = 'gone') then 'gone' when bool_or(state = 'outdated') then 'outdated'
          else 'current' end as state,
        max(created_at) as at, jsonb_agg(distinct sources) as sources, jsonb_agg(distinct taint) as taint
      from open cross join lateral (
        select case when path is not null or starts_with(source, 'web:') then regexp_replace(source, '\\[[0-9]+\\]$', '')
          when title = '' then 'user' else source end as prefix) p
      group by prefix order by prefix`,
  );
  return rows.map((row) => ({ ...row, sources: distinct(row.sources), taint: distinct(row.taint) }));
};

const distinct = <Name>(lists: readonly (readonly Name[])[]): Name[] => [...new Set(lists.flat())];

/** Sources that are meant. */
export interface SourceChoice {
  /** All that begin with one of these. */
  readonly prefixes: readonly string[];
  readonly exact?: readonly string[];
}

/** Removes what comes from these, of all that this reader may see, with its vectors. Returns the sources. */
export const removeKnowledge = async (
  database: Database,
  who: KnowledgeReader,
  { exact = [], prefixes }: SourceChoice,
): Promise<string[]> => {
  const rows = await database.run(
    (sql) => sql<{ source: string }[]>`
      with ${openEntries(sql, who)}
      delete from knowledge where id in (
        select id from open where source = any (${[...exact]}::text[]) or exists (
          select 1 from unnest(${[...prefixes]}::text[]) prefix where starts_with(source, prefix)))
      returning source`,
  );
  return rows.map(({ source }) => source).sort();
};

/**
 * CTEs up to `open`: entries that stand behind no wall. The reader's people and everybody in the conversation could read
 * all sources of each, as they are now, and its file as `FileAccess` has it.
 */
const openEntries = (sql: Sql, { agent, here, owner, requesters, userId, uses }: KnowledgeReader) => sql`
  readers as materialized (
    select audience_of(${here}, ${owner}) as audience, ${[...requesters]}::text[] as requesters
  ), places as materialized (
    select place, is_at(${userId}, ${owner}, place) and may_read(audience, place, ${owner})
      and may_read(requesters, place, ${owner}) as is_open
    from (select distinct unnest(sources) as place from knowledge where agent = ${agent}) p, readers
  ), unseen as materialized (
    select place as room_id, since, until from readers, places
      cross join lateral unseen_by(audience || requesters, place)
    where is_open and place like '!%'
  ), early as materialized (
    select share, path from readers cross join (
        select share, array_agg(distinct path) as paths from knowledge
        where agent = ${agent} and path is not null group by share) s
      cross join lateral too_early(audience || requesters, share, paths) path
    union
    select v.share, v.path from file_versions v join unseen u on u.room_id = v.root and v.place >= u.since and v.place < u.until
    where v.share = 'rooms' and v.path in (select path from knowledge where agent = ${agent} and share = 'rooms')
      and not exists (select 1 from files f where f.share = v.share and f.path = v.path)
  ), open as materialized (
    select k.id, k.source, k.title, k.share, k.path, k.first_line, k.last_line, k.text, k.words, k.sources, k.created_at,
      case when f.tainted then array(select distinct unnest(k.taint || (k.share || ':' || k.path))) else k.taint end as taint,
      case when k.path is null or (f.path is null and k.version = 0) or f.version = k.version then 'current'
        when f.path is null then 'gone' else 'outdated' end as state
    from knowledge k left join files f on f.share = k.share and f.path = k.path
    where k.agent = ${agent}
      and k.sources <@ (select coalesce(array_agg(place) filter (where is_open), '{}') from places)
      and (cardinality(k.sources) > 0 or coalesce(k.share, '') <> 'agents' or ${uses})
      and case when k.path is null then not exists (
          select 1 from unseen u where u.room_id = any (k.sources) and k.place >= u.since and k.place < u.until)
        else not exists (select 1 from early e where e.share = k.share and e.path = k.path) end
  )`;

/** CTE `mine`: those of them that are sought. */
const soughtEntries = (sql: Sql, { files, sourcePrefix }: KnowledgeSought) => sql`
  mine as materialized (
    select * from open where state <> 'gone'
      and (${sourcePrefix ?? null}::text is null or starts_with(source, ${sourcePrefix ?? null}))
      and (${files?.share ?? null}::text is null or (
        share = ${files?.share ?? null} and path = any (${[...(files?.paths ?? [])]}::text[])))
  )`;

/** CTEs `asked` and `sought`: words of the question, with how much each tells, and the query for them. */
const askedWords = (sql: Sql, { text }: KnowledgeSought) => sql`
  asked as materialized (
    select asked.word, ln(1 + (greatest(t.interactions, coalesce(c.interactions, 0)) - coalesce(c.interactions, 0) + 0.5)
      / (coalesce(c.interactions, 0) + 0.5)) as idf
    from unnest(tsvector_to_array(to_tsvector('english', ${text}))) as asked(word)
      cross join word_counting t left join word_counts c on c.word = hash_of(asked.word)
  ), sought as materialized (
    select string_agg(quoted_word(word), '|')::tsquery as query from asked
  )`;

/** CTE `by_words`: candidates that have some of the words. */
const byWords = (sql: Sql) => sql`
  by_words as materialized (
    select id from mine, sought where words @@ query order by ts_rank(words, query) desc, id limit ${candidates}
  )`;

/** CTE `by_meaning`: candidates whose vectors are closest; they are compared one by one. */
const byMeaning = (sql: Sql, { vector }: KnowledgeSought) =>
  vector === undefined
    ? sql`by_meaning as (select null::bigint as id, null::float8 as closeness where false)`
    : sql`
  by_meaning as materialized (
    select knowledge_id as id, 1 - min(distance) as closeness from (
      select v.knowledge_id, ${distance(sql, vector)} as distance
      from mine cross join lateral (
        select * from knowledge_vectors v where v.knowledge_id = mine.id and v.model = ${vector.model} offset 0) v) compared
    group by knowledge_id
  )`;

/** CTE `scored`: candidates, with how well they fit. What has no vector yet is judged by its words. */
const scored = (sql: Sql, { vector }: KnowledgeSought) => sql`
  scored as materialized (
    select m.*, ${
      vector === undefined
        ? sql`o.overlap`
        : sql`${weights.words}::float8 * o.overlap + ${weights.meaning}::float8 * coalesce(c.closeness, o.overlap)`
    } as fit
    from (
      select id from by_words union (select id from by_meaning order by closeness desc limit ${candidates})
    ) found join mine m using (id) left join by_meaning c using (id) cross join lateral (
      select (coalesce((select sum(idf) from asked where word = any (tsvector_to_array(m.words))), 0)
        / greatest((select sum(idf) from asked), 1e-9))::float8 as overlap) o
  )`;

/** Distance of a vector `v` from the one that is sought. */
const distance = (sql: Sql, { numbers }: NonNullable<KnowledgeSought["vector"]>): Fragment => {
  const type = sql.unsafe(`vector(${numbers.length})`) as unknown as Fragment;
  return sql`(v.vector::${type} <=> ${JSON.stringify(numbers)}::${type})`;
};
