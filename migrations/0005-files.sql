-- A folder that was made is a row of type inode/directory; other folders are there because something is in them.
alter table files
  -- The event that the content came with: its redaction removes the file.
  add column event_id text,
  -- Names the write that made this version, so that the same write is not carried out again.
  add column write_key text,
  -- The first part of the path: the agent, user or room that the file is of.
  add column root text generated always as (split_part(path, '/', 2)) stored,
  add column size integer generated always as (coalesce(octet_length(text_content), octet_length(binary_content), 0)) stored;
create index files_by_path on files (share, path collate "C");
create index files_of_root on files (share, root) include (size);
create index files_event on files (event_id) where event_id is not null;

-- Former versions of files that were overwritten or deleted; kept for 7 days.
create table file_versions (
  share varchar(64) not null,
  path varchar(1024) not null,
  version integer not null,
  content_type text not null,
  text_content text,
  binary_content bytea,
  owner varchar(255) not null,
  event_id text,
  write_key text,
  -- Names the write or the removal that ended this version.
  ended_key text,
  written_at timestamptz not null,
  ended_at timestamptz not null default now(),
  root text generated always as (split_part(path, '/', 2)) stored,
  size integer generated always as (coalesce(octet_length(text_content), octet_length(binary_content), 0)) stored,
  primary key (share, path, version)
);
create index file_versions_age on file_versions (ended_at);
create index file_versions_event on file_versions (event_id) where event_id is not null;

-- The humans who see what stands in a place: a room, a user ('@…'), or '' for the agent's home.
create function audience_of(place text, owner text) returns text[]
language sql stable as $$
  select case
    when place = '' then array[owner]
    when place like '@%' then array[place]
    else coalesce((
      select array_agg(user_id) from members where room_id = place and kind = 'human' and membership = 'join'), '{}')
  end
$$;

-- As before; a source may also be a user, whose files only that user may read.
create or replace function may_read(audience text[], source text, owner text) returns boolean
language sql stable as $$
  select cardinality(audience) > 0 and case
    when source = '' then audience <@ array[owner]
    when source like '@%' then audience <@ array[source]
    else not exists (
      select 1 from unnest(audience) reader
      where not exists (
        select 1 from members m
        where m.room_id = source and m.user_id = reader and m.membership = 'join'))
  end
$$;

-- True if an agent has to do with a place: it is in the room; it shares a room with the user, or belongs to them.
create function is_at(agent_user text, owner text, place text) returns boolean
language sql stable as $$
  select case
    when place = '' then true
    when place like '@%' then place = owner or exists (
      select 1 from members a join members u using (room_id)
      where a.user_id = agent_user and a.membership = 'join' and u.user_id = place and u.membership = 'join')
    else exists (
      select 1 from members m where m.room_id = place and m.user_id = agent_user and m.membership = 'join')
  end
$$;

-- Knowledge of agents from files and people: `fileChunk:{path}[{i}]`, `fileSummary:{path}`, …
create table knowledge (
  id bigint generated always as identity primary key,
  agent text not null references agents (name),
  source text not null,
  text text not null,
  -- The room, the user ('@…') or the home ('') from which it comes, as may_read takes it; null where there is no wall.
  wall text,
  -- The event that it came with: its redaction removes the entry.
  event_id text,
  created_at timestamptz not null default now(),
  unique (agent, source)
);
create index knowledge_event on knowledge (event_id) where event_id is not null;
