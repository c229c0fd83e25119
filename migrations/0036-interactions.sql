-- The long memory: one row for everything that agents observe or do. An event of a room is one row for all agents that
-- were there; what an agent thinks and does is its own.
create table interactions (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('observation', 'action', 'thought', 'summary', 'fact')),
  -- Whose it is; null for an event of a room.
  agent text references agents (name),
  -- The conversation in which it happened; '' for the agent's home.
  room_id text not null,
  event_id text unique,
  -- The entry of the ephemeris that it stands for. What a tool keeps has a part below zero.
  turn_id bigint,
  n integer,
  part integer,
  -- Sensor by which it was noticed, or tool by which it was done.
  tool text,
  sender text,
  at timestamptz not null default now(),
  -- Place in history, as everything has it that is behind walls.
  place double precision not null default place_now(),
  -- Rooms from which it was made, as `may_read` names them: whoever may not read all of them may not read it.
  sources text[] not null,
  -- `Speaker: words`, without a date; what is searched, and what vectors are made of.
  text text not null,
  -- The name with which it begins.
  speaker text not null,
  -- With the place in which it may be found: a room, or `agent/NAME` for what is an agent's own.
  words tsvector generated always as
    (to_tsvector('english', text) || array_to_tsvector(array[coalesce('agent/' || agent, room_id)])) stored,
  -- From 0 to 1.
  importance real not null,
  requester text,
  -- Untrusted texts behind it; of an event, the trust in its sender counts as well.
  taint text[] not null default '{}',
  -- Somebody who may has let it over every wall.
  shareable boolean not null default false,
  -- The newest of a key supersedes the older ones.
  fact_key text,
  unique (turn_id, n, part)
);
create index interactions_words on interactions using gin (words) with (gin_pending_list_limit = 256);
create index interactions_of_room on interactions (room_id, place) where agent is null;
create index interactions_of_agent on interactions (agent, id) where agent is not null;
create index interactions_of_fact on interactions (agent, room_id, fact_key, id) where fact_key is not null;

-- Name under which a user stands in recall texts.
create function speaker_of(room text, user_id text) returns text
language sql stable as $$
  select coalesce(
    (select nullif(trim(m.display_name), '') from members m where m.room_id = $1 and m.user_id = $2),
    split_part(substr($2, 2), ':', 1))
$$;

-- Vectors of interactions, by model: a long text has one for each chunk. Without the extension pgvector the column
-- `vector` is missing, and memory is searched by words alone.
create table interaction_vectors (
  interaction_id bigint not null references interactions (id) on delete cascade,
  model text not null,
  chunk integer not null,
  primary key (interaction_id, model, chunk)
);
do $$
begin
  create extension if not exists vector;
  alter table interaction_vectors add column vector vector not null;
exception when others then
  raise notice 'no vectors: %', sqlerrm;
end $$;

-- Interactions whose text is new, or has changed, since vectors were made of it.
create table interactions_to_embed (
  interaction_id bigint primary key references interactions (id) on delete cascade
);

-- In how many interactions a word occurs, by a hash of it: the words of what is forgotten are kept nowhere.
create table word_counts (
  word bigint primary key,
  interactions integer not null
);
-- A lexeme as it stands in a query.
create function quoted_word(word text) returns text language sql immutable as $$
  select '''' || replace(replace($1, '\', '\\'), '''', '''''') || ''''
$$;
-- The one row: how many interactions were counted, up to which id.
create table word_counting (
  counted_to bigint not null,
  interactions bigint not null
);
insert into word_counting values (0, 0);
create function hash_of(word text) returns bigint language sql immutable as $$ select hashtextextended($1, 0) $$;

-- Events and entries from before this table are taken over in the background, the newest first: those below are to come.
create table memory_takeover (
  source text primary key check (source in ('events', 'ephemeris')),
  below bigint not null
);
insert into memory_takeover
select 'events', max(seq) + 1 from events having max(seq) is not null
union all select 'ephemeris', max(id) + 1 from ephemeris having max(id) is not null;
