-- State of the file that an event carries; null: it carries none. `media_after`: the file is to be fetched, from then on.
alter table events add column media jsonb;
alter table events add column media_after timestamptz;
create index events_to_fetch on events (media_after) where media_after is not null;

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check
  check (kind in ('message', 'file', 'media', 'reaction', 'join', 'leave', 'profile'));

-- Files that rows of the outbox carry, as they were when they were given away. The homeserver's address of a file takes
-- the place of its content.
create table uploads (
  key text not null,
  part text not null check (part in ('file', 'thumbnail')),
  name text not null,
  content_type text not null,
  content bytea,
  url text,
  created_at timestamptz not null default now(),
  primary key (key, part)
);
create index uploads_age on uploads (created_at);
