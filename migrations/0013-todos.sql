-- Todos of a conversation. A removed todo stays, for the operations that are linked to it.
create table todos (
  agent text not null references agents (name),
  room_id text not null,
  -- As people and agents name it; never used again.
  number integer not null,
  name text not null,
  created_at timestamptz not null default now(),
  done_at timestamptz,
  removed_at timestamptz,
  -- Of the call that made it, with its place among those that the call made.
  key text not null unique,
  -- Sources that that call had been shown, as `may_read` names them: who may not read those may not read the todo.
  sources text[] not null default '{}',
  -- Untrusted texts that it had read.
  taint text[] not null default '{}',
  primary key (agent, room_id, number)
);
-- The number of the newest todo.
alter table conversations add column todos integer not null default 0;
create index operations_of_todo on operations (agent, room_id, todo) where todo is not null;
