import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { InteractionKind } from "./interactions.ts";
import { isOpen, type Rememberer, wallCtes } from "./recall-walls.ts";

/** Vector of a text, by a model. */
interface Vector {
  readonly model: string;
  readonly numbers: readonly number[];
}

/** Question to the memory. */
export interface Sought {
  /** Text without names. */
  readonly words: string;
  /** People who are named in it: what they said counts more. */
  readonly named: readonly UserId[];
  /** Vector of the text, and the model that made it; without one, words alone decide. */
  readonly vector?: Vector | undefined;
  readonly room?: RoomId | undefined;
  readonly person?: UserId | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  readonly limit: number;
  /** Events that are not recalled. */
  readonly except?: readonly EventId[] | undefined;
  /** Parts of the history that can be read anyway: nothing said in them is recalled. */
  readonly shown?: readonly Stretch[] | undefined;
  /** Entries of the agent's own from this time on are not recalled, either. */
  readonly ownBefore?: Date | undefined;
  /** Least score of what is recalled. */
  readonly scoreLeast?: number | undefined;
  /** `product`: importance is a gentle factor; `seed`: it counts 0.3 among the best, as the seeds have it. */
  readonly ranking?: "product" | "seed" | undefined;
}

/** Part of a room's history: places, from the first to the last. */
export interface Stretch {
  readonly roomId: RoomId;
  readonly first: number;
  readonly last: number;
}

/** An interaction as it is recalled. */
export interface Recalled {
  readonly id: number;
  readonly kind: InteractionKind;
  readonly tool: string | null;
  readonly roomId: RoomId;
  readonly eventId: EventId | null;
  readonly number: number | null;
  readonly sender: UserId;
  readonly at: Date;
  readonly text: string;
  readonly score: number;
  /** Rooms behind it; none where it was let over every wall. */
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
}

/** Candidates of each kind, and the neighbours of each on either side. */
const candidates = 50;
const neighbours = 4;
/** Interactions whose vectors are compared one by one; among more, the index finds the closest. */
const fewMost = 2_000;
/** The best, among which the ranking `seed` has importance count. */
const bestMost = 20;
/** A word is searched for if fewer interactions have it than this share of all, or than this number. */
const commonShare = 0.02;
const commonLeast = 500;

/** Weights of the recipe. */
const weights = { meaning: 0.5, words: 0.5, near: 0.5, sender: 0.2, importance: 0.1, recency: 0.05 };

/**
 * Recalls what fits best, in one statement. Its CTEs decide the walls first: what is found was said where everybody in
 * the audience could read it and the agent was there, or is the agent's own, made from such rooms alone. What walls do not
 * hold leaves a trace, by which a redaction follows it.
 */
export const recall = (database: Database, who: Rememberer, sought: Sought): Promise<Recalled[]> =>
  database.run(
    (sql) => sql<Recalled[]>`
      with ${wallCtes(sql, who)}, ${shownStretches(sql, sought)}, ${askedWords(sql, sought)}, ${wordQuery(sql, who)}, ${byWords(sql, who, sought)},
        ${byMeaning(sql, who, sought)}, ${byTime(sql, who, sought)}, ${areaAround(sql)}, ${scoredArea(sql, who, sought)},
        ${ranked(sql, sought)}, chosen as (
          select r.*, r.final as score from ranked r where r.final >= ${sought.scoreLeast ?? 0}
          order by r.final desc, r.at desc, r.id desc limit ${sought.limit}
        ), traced as (
          insert into shareable_recalls select id, ${who.here} from chosen where shareable on conflict do nothing
        )
      select r.id, r.kind, r.tool, r.room_id as "roomId", r.event_id as "eventId", e.number, r.sender, r.at,
        substr(r.text, length(r.speaker) + 3) as text, r.score,
        case when r.shareable then '{}' else r.sources end as sources, r.taint
      from chosen r left join lateral (select number from events where event_id = r.event_id offset 0) e on true
      order by r.score desc, r.at desc, r.id desc`,
  );

/** CTE `shown`: what can be read without the memory. */
const shownStretches = (sql: Sql, { shown = [] }: Sought) => sql`
  shown as materialized (
    select "roomId" as room_id, first, last
    from jsonb_to_recordset(${sql.json(shown as unknown as Json)}) as s("roomId" text, first float8, last float8)
  )`;

/** Condition on an interaction `i`: it is among those that are sought, and no later one has taken its place. */
const isSought = (sql: Sql, { except = [], from, ownBefore, person, room, to }: Sought) => sql`(
  (${room ?? null}::text is null or i.room_id = ${room ?? null})
  and (${person ?? null}::text is null or i.sender = ${person ?? null})
  and (${from ?? null}::timestamptz is null or i.at >= ${from ?? null})
  and (${to ?? null}::timestamptz is null or i.at <= ${to ?? null})
  and (i.event_id is null or i.event_id <> all (${[...except]}::text[]) and not exists (
    select 1 from shown where shown.room_id = i.room_id and i.place >= shown.first and i.place <= shown.last))
  and (${ownBefore ?? null}::timestamptz is null or i.turn_id is null or i.part < 0 or i.at < ${ownBefore ?? null})
  and (i.fact_key is null or not exists (
    select 1 from interactions later where later.agent = i.agent and later.room_id = i.room_id
      and later.fact_key = i.fact_key and later.id > i.id)))`;

/** CTE `asked`: words of the question, with how much each tells. */
const askedWords = (sql: Sql, { words }: Sought) => sql`
  asked as materialized (
    select word, n, total, ln(1 + (greatest(total, n) - n + 0.5) / (n + 0.5)) as idf
    from (
      select asked.word, coalesce(c.interactions, 0) as n, t.interactions as total
      from unnest(tsvector_to_array(to_tsvector('english', ${words}))) as asked(word)
        cross join word_counting t left join word_counts c on c.word = hash_of(asked.word)
    ) counted
  )`;

/** CTE `sought`: query for those words that are not everywhere, in the places that may be searched. */
const wordQuery = (sql: Sql, { agent }: Rememberer) => sql`
  sought as materialized (
    select ('(' || string_agg(quoted_word(word), '|') || ')&(' || (
      select string_agg(quoted_word(place), '|')
      from (select room_id as place from readable union all select ${`agent/${agent}`}) places) || ')')::tsquery as query
    from (
      select word from asked order by n < greatest(total * ${commonShare}::float8, ${commonLeast}::float8) desc, idf desc, word
      limit greatest(1, (
        select count(*) from asked where n < greatest(total * ${commonShare}::float8, ${commonLeast}::float8)))
    ) rare
  )`;

/** CTE `by_words`: candidates that have some of the words. */
const byWords = (sql: Sql, who: Rememberer, what: Sought) => sql`
  by_words as materialized (
    select i.id from sought, interactions i
    where i.words @@ sought.query and ${isOpen(sql, who)} and ${isSought(sql, what)}
    order by ts_rank(i.words, sought.query) desc, i.id desc limit ${candidates}
  )`;

/**
 * CTE `by_meaning`, with `few` and `few_of_named`: candidates whose vectors are closest, among all that come into
 * question, and among what the people said who are named. Where these are few, their vectors are compared one by one: the
 * index, which goes through what is closest of everything, would hardly meet them.
 */
const byMeaning = (sql: Sql, who: Rememberer, what: Sought) => {
  const { named, vector } = what;
  if (vector === undefined) return sql`by_meaning as (select null::bigint as id where false)`;
  const isInQuestion = sql`${isOpen(sql, who)} and ${isSought(sql, what)}`;
  const isOfNamed = sql`i.agent is null and i.sender = any (${[...named]})`;
  return sql`
  few as materialized (
    select id from (
      select found.id from readable r cross join lateral (
        select i.id from interactions i where i.agent is null and i.room_id = r.room_id and ${isInQuestion}
        order by i.place desc limit ${fewMost + 1}) found
      union all select i.id from interactions i where i.agent = ${who.agent} and ${isInQuestion}
    ) found limit ${fewMost + 1}
  ), few_of_named as materialized (
    select i.id from interactions i where ${isOfNamed} and ${isInQuestion} limit ${fewMost + 1}
  ), by_meaning as materialized (
    ${closest(sql, vector, "few", isInQuestion)} union ${closest(sql, vector, "few_of_named", sql`${isOfNamed} and ${isInQuestion}`)}
  )`;
};

/** Query for those whose vectors are closest: in the table `few`, or by the index if more than it can hold are `meant`. */
const closest = (sql: Sql, vector: Vector, few: "few" | "few_of_named", meant: Fragment) => {
  const isOfModel = sql`v.model = ${literal(sql, vector.model)}`;
  return sql`
    (select v.interaction_id as id from ${sql(few)} cross join lateral (
        select * from interaction_vectors v where v.interaction_id = ${sql(few)}.id and ${isOfModel} offset 0) v
      where (select count(*) from ${sql(few)}) <= ${fewMost}
      order by ${distance(sql, vector)} limit ${candidates})
    union
    (select i.id from interaction_vectors v join interactions i on i.id = v.interaction_id
      where ${isOfModel} and (select count(*) from ${sql(few)}) > ${fewMost} and ${meant}
      order by ${distance(sql, vector)} limit ${candidates})`;
};

/** CTE `by_time`: the last of what was said, where nothing but names was asked for. */
const byTime = (sql: Sql, who: Rememberer, what: Sought) => sql`
  by_time as materialized (
    select found.id from readable r cross join lateral (
      select i.id, i.at from interactions i
      where i.agent is null and i.room_id = r.room_id and ${isOpen(sql, who)} and ${isSought(sql, what)}
      order by i.place desc limit ${candidates}) found
    where not exists (select 1 from asked) and not exists (select 1 from by_meaning)
    order by found.at desc limit ${candidates}
  )`;

/**
 * Interaction `i` of a row in a CTE. It is planned by itself: as a join, the plan may read all interactions there are,
 * since nobody can tell beforehand how few rows the CTE has.
 */
const rowOf = (sql: Sql, table: "found" | "area") =>
  sql`(select * from interactions where id = ${sql(table)}.id offset 0) i`;

/** CTEs `pairs` and `area`: candidates with the messages before and after them. */
const areaAround = (sql: Sql) => sql`
  found as materialized (
    select id from by_words union select id from by_meaning union select id from by_time
  ), pairs as materialized (
    select i.id as one, n.id as other
    from found cross join lateral ${rowOf(sql, "found")} cross join lateral (
      (select id from interactions b where b.agent is null and b.room_id = i.room_id and b.place < i.place
        order by b.place desc limit ${neighbours})
      union all
      (select id from interactions b where b.agent is null and b.room_id = i.room_id and b.place > i.place
        order by b.place limit ${neighbours})) n
    where i.agent is null
  ), area as materialized (select id from found union select other from pairs)`;

/** CTE `scored`: what of this may be read, with how well it fits by itself. */
const scoredArea = (sql: Sql, who: Rememberer, what: Sought) => sql`
  scored as materialized (
    select i.*, ${isSought(sql, what)} as is_sought,
      ${
        what.vector
          ? sql`${weights.words}::float8 * o.overlap + ${weights.meaning}::float8 * coalesce((
        select 1 - min(${distance(sql, what.vector)}) from interaction_vectors v
        where v.interaction_id = i.id and v.model = ${literal(sql, what.vector.model)}), o.overlap)`
          : sql`o.overlap`
      } as fit
    from area cross join lateral ${rowOf(sql, "area")} cross join lateral (
      select coalesce((select sum(idf) from asked where word = any (tsvector_to_array(i.words))), 0)
        / greatest((select sum(idf) from asked), 1e-9) as overlap) o
    where ${isOpen(sql, who)}
  )`;

/** CTE `ranked`: what is sought of this, with its final score. */
const ranked = (sql: Sql, { named, ranking = "product" }: Sought) => {
  const summed = sql`
    summed as (
      select s.*, s.fit + ${weights.near}::float8 * coalesce((
          select max(o.fit) from scored o where o.id in (
            select other from pairs where one = s.id union all select one from pairs where other = s.id)), 0)
        + case when s.sender = any (${[...named]}) then ${weights.sender}::float8 else 0 end as sum,
        ${weights.recency}::float8 * power(0.995, greatest(0, extract(epoch from now() - s.at) / 3600)) as recency
      from scored s where s.is_sought
    )`;
  if (ranking === "product")
    return sql`${summed}, ranked as (
      select *, sum * (1 + ${weights.importance}::float8 * importance) + recency as final from summed)`;
  return sql`${summed}, best as (select * from summed order by sum desc, id desc limit ${bestMost}), ranked as (
    select *, 0.7 * coalesce((sum - min(sum) over ()) / nullif(max(sum) over () - min(sum) over (), 0), 1)
      + 0.3 * coalesce((importance - min(importance) over ()) / nullif(max(importance) over () - min(importance) over (), 0), 1)
      as final from best)`;
};

/** A text as it stands in a statement: the planner has to see it, to know which index serves. */
const literal = (sql: Sql, text: string): Fragment =>
  sql.unsafe(`'${text.replaceAll("'", "''")}'`) as unknown as Fragment;

/** Distance of a vector `v` from the one that is sought, in the form in which the index has it. */
const distance = (sql: Sql, { numbers }: Vector): Fragment => {
  const type = sql.unsafe(`vector(${numbers.length})`) as unknown as Fragment;
  return sql`(v.vector::${type} <=> ${JSON.stringify(numbers)}::${type})`;
};
