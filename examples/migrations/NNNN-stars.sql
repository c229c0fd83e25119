-- Messages that people have marked for themselves.
create table stars (
  user_id text not null,
  event_id text not null references events (event_id) on delete cascade,
  starred_at timestamptz not null default now(),
  primary key (user_id, event_id)
);
