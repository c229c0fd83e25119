-- Knowledge that can be searched: who may be shown it, of which file it is, its words, and vectors like those of memory.
alter table knowledge
  -- Rooms, users ('@…') and the home ('') from which it comes, as may_read takes them: whoever may not read all of them
  -- may not read it. None: what comes with the program, or defines an agent.
  add column sources text[] not null default '{}',
  -- Place in history; of a file it is looked up anew.
  add column place double precision not null default place_now(),
  -- Untrusted texts from which it was made.
  add column taint text[] not null default '{}',
  -- Name of the file, or a title that somebody gave.
  add column title text not null default '',
  -- The file that it is of, and its version.
  add column share text,
  add column path text,
  add column version integer,
  add column first_line integer,
  add column last_line integer,
  add column words tsvector generated always as (to_tsvector('english', title || ' ' || text)) stored;
update knowledge set sources = array[wall] where wall is not null;
update knowledge set share = found[2], path = found[3], title = regexp_replace(found[3], '^.*/', '')
from (select id, regexp_match(source, '^file(Summary|Chunk):([a-z]+):(/.*?)(?:\[\d+\])?$') as found from knowledge) f
where f.id = knowledge.id and found is not null;
alter table knowledge drop column wall;
create index knowledge_words on knowledge using gin (words) with (gin_pending_list_limit = 256);
create index knowledge_of_file on knowledge (share, path) where path is not null;

-- Vectors of knowledge, as interaction_vectors has them.
create table knowledge_vectors (
  knowledge_id bigint not null references knowledge (id) on delete cascade,
  model text not null,
  chunk integer not null,
  primary key (knowledge_id, model, chunk)
);
do $$
begin
  create extension if not exists vector;
  alter table knowledge_vectors add column vector vector not null;
exception when others then
  raise notice 'no vectors: %', sqlerrm;
end $$;
create function forget_knowledge_vectors() returns trigger language plpgsql as $$
begin
  delete from knowledge_vectors where knowledge_id = new.id;
  return null;
end
$$;
create trigger knowledge_changed after update on knowledge
  for each row when (old.text is distinct from new.text or old.title is distinct from new.title)
  execute function forget_knowledge_vectors();

-- Knowledge that has no vectors yet.
create table knowledge_to_embed (
  knowledge_id bigint primary key references knowledge (id) on delete cascade
);
insert into knowledge_to_embed select id from knowledge;

-- Summaries of which people were asked whether an agent shall keep them, by the row of the outbox that asks.
create table knowledge_offers (
  key text primary key,
  agent text not null references agents (name),
  room_id text not null,
  -- The entry of `knowledge` that it would become.
  entry jsonb not null,
  event_id text,
  created_at timestamptz not null default now(),
  kept_by text
);
create index knowledge_offers_event on knowledge_offers (event_id) where event_id is not null;
