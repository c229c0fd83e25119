-- What a conversation has set out to do. Numbers are never used again; what is removed stays for what is linked to it.
create table todos (
  agent text not null references agents (name),
  room_id text not null,
  number integer not null,
  name text not null,
  created_at timestamptz not null default now(),
  done_at timestamptz,
  removed_at timestamptz,
  -- Names the call that made it.
  key text not null,
  primary key (agent, room_id, number)
);
create index todos_open on todos (agent, room_id, number) where removed_at is null;
