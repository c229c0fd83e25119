create table files (
  id bigint generated always as identity primary key,
  share varchar(64) not null,
  path varchar(1024) not null,
  content_type text not null,
  text_content text,
  binary_content bytea,
  owner varchar(255) not null,
  version integer not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (share, path)
);

-- One row for each agent and room it is or was in; room_id '' is the agent's home conversation.
create table conversations (
  agent text not null references agents (name),
  room_id text not null,
  seen_position double precision not null default 0,
  primary key (agent, room_id)
);

-- Agent-to-agent turns that one human event has caused.
create table chains (
  root text primary key,
  spent integer not null default 0,
  created_at timestamptz not null default now()
);

create table turns (
  id bigint generated always as identity primary key,
  agent text not null references agents (name),
  room_id text not null,
  number bigint not null,
  reason text not null,
  state text not null default 'running' check (state in ('running', 'done', 'failed', 'cancelled')),
  -- Rises when the turn is taken over; a step written under another epoch is refused.
  epoch integer not null default 1,
  runner text not null,
  requesters text[] not null default '{}',
  chain text,
  -- Rooms whose content was rendered to the model in this turn.
  sources text[] not null default '{}',
  error text,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  unique (agent, number)
);
create unique index turns_open on turns (agent, room_id) where state = 'running';
create index turns_by_room on turns (agent, room_id, id);

-- Why a conversation has to work; `turn_id` is the turn that took it.
create table wakes (
  id bigint generated always as identity primary key,
  key text not null unique,
  agent text not null references agents (name),
  room_id text not null,
  reason text not null,
  event_id text,
  position double precision,
  requester text,
  chain text,
  note text,
  turn_id bigint references turns (id),
  created_at timestamptz not null default now()
);
create index wakes_unread on wakes (agent, room_id, id) where turn_id is null;
create index wakes_of_turn on wakes (turn_id) where turn_id is not null;

-- The journal: a model call or an operation each. `started` without `done` is an outcome that nobody knows.
create table steps (
  turn_id bigint not null references turns (id) on delete cascade,
  n integer not null,
  name text not null,
  state text not null check (state in ('started', 'done')),
  result jsonb,
  created_at timestamptz not null default now(),
  primary key (turn_id, n)
);

create table usage (
  turn_id bigint not null,
  n integer not null,
  agent text not null,
  room_id text not null,
  model text not null,
  prompt_tokens integer not null,
  cached_tokens integer not null,
  completion_tokens integer not null,
  cost_usd double precision,
  estimated boolean not null,
  milliseconds integer not null,
  created_at timestamptz not null default now(),
  primary key (turn_id, n)
);

-- Prompts exactly as they were shown to the model; emptied when an event in them is redacted.
create table renders (
  turn_id bigint not null,
  n integer not null,
  system text not null,
  prompt text not null,
  event_ids text[] not null,
  created_at timestamptz not null default now(),
  primary key (turn_id, n)
);
create index renders_events on renders using gin (event_ids);
create index renders_age on renders (created_at);

-- The agent's record of its own thoughts and calls, one LMML element a row.
create table ephemeris (
  id bigint generated always as identity primary key,
  user_id varchar(255) not null,
  room_id text not null,
  turn_id bigint not null,
  n integer not null,
  part integer not null,
  entry text not null,
  sources text[] not null,
  created_at timestamptz not null default now(),
  unique (turn_id, n, part)
);
create index ephemeris_of_agent on ephemeris (user_id, id);
