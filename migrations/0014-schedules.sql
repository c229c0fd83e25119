-- Texts with which an agent is woken, once or again and again.
create table schedules (
  id bigint generated always as identity primary key,
  -- Of the call that made it.
  key text not null unique,
  agent text not null references agents (name),
  room_id text not null,
  -- null: once, at `next_at`.
  cron text,
  time_zone text not null,
  text text not null,
  -- For whom its turns act.
  made_by text not null,
  -- Sources that its maker had been shown, as `may_read` names them, and the untrusted texts among them.
  sources text[] not null default '{}',
  taint text[] not null default '{}',
  -- When it fires next; null: never again.
  next_at timestamptz,
  created_at timestamptz not null default now(),
  removed_at timestamptz
);
create index schedules_due on schedules (next_at) where next_at is not null and removed_at is null;
create index schedules_of_agent on schedules (agent, id) where removed_at is null;

-- Sources of the note, as `may_read` names them, and the untrusted texts among them.
alter table wakes
  add column sources text[] not null default '{}',
  add column taint text[] not null default '{}';
