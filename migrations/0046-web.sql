-- Windows on pages and videos of the web, and on results of searches in it.
alter table windows drop constraint windows_src_type_check;
alter table windows add constraint windows_src_type_check check (src_type in ('file', 'search', 'page', 'web', 'video', 'system'));

-- Addresses that stood in pages and search results which an agent has read in a conversation: it may open them unasked,
-- whatever steers it. They are digests, as nothing else is asked of them.
create table web_addresses (
  agent text not null references agents (name) on delete cascade,
  room_id text not null,
  digest text not null,
  seen_at timestamptz not null default clock_timestamp(),
  primary key (agent, room_id, digest)
);
