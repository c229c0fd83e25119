-- An index takes no key of more than 2,700 bytes: what a window shows is told apart by a digest of its source.
create function window_digest(src text, arguments text) returns text
language sql immutable parallel safe as $$
  select encode(sha256(convert_to(src || e'\n' || arguments, 'UTF8')), 'base64')
$$;
alter table windows add column digest text not null generated always as (window_digest(src, arguments)) stored;
alter table windows drop constraint windows_agent_room_id_src_type_src_arguments_key;
alter table windows add unique (agent, room_id, src_type, digest);

-- Deeds that leave no other trace: who tries one again after a death learns here that it was done.
create table done (
  key text primary key,
  -- The paths, or numbers, that it was done to.
  things text[] not null,
  done_at timestamptz not null default now()
);
create index done_age on done (done_at);
