-- Every call of a tool, by a model or by a person.
create table operations (
  id bigint generated always as identity primary key,
  -- Of the call: the same however often it is run.
  key text not null unique,
  tool text not null,
  kind text not null check (kind in ('read', 'create', 'update', 'delete')),
  summary text not null,
  input jsonb not null,
  -- Of tool and input: an approval counts for nothing else.
  input_hash text not null,
  agent text not null references agents (name),
  room_id text not null,
  by text not null check (by in ('model', 'person')),
  requesters text[] not null,
  -- Those of the turn's sub-agents who called, from the outermost: 'planner', 'planner/clerk'.
  sub_agent text,
  -- Number of a todo of the conversation.
  todo integer,
  turn_id bigint,
  n integer,
  -- Under which the agent is shown the call.
  call_id text,
  state text not null check (state in ('asked', 'running', 'done', 'failed', 'refused', 'interrupted', 'expired', 'unknown')),
  -- Why it was asked for, until when, and what became of that.
  asked_because text,
  asked_at timestamptz,
  expires_at timestamptz,
  card_room text,
  -- Key of the card in the outbox.
  card_key text,
  decision text check (decision in ('approved', 'denied')),
  decided_by text,
  decided_because text,
  decided_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  -- A functionResult's content, as LMML or text.
  result text,
  error text,
  -- Whatever the caller had been shown, as `may_read` names it: who may not read that may not read the operation.
  sources text[] not null default '{}',
  -- Untrusted texts that the caller had read.
  taint text[] not null default '{}',
  created_at timestamptz not null default now()
);
create index operations_of_conversation on operations (agent, room_id, id);
create index operations_of_turn on operations (turn_id, n) where turn_id is not null;
create index operations_by_card on operations (card_key) where card_key is not null;
create index operations_asked on operations (expires_at) where state = 'asked';
create index operations_open on operations (agent, room_id) where state in ('asked', 'running');

-- A parked turn waits for a decision; a ready one has it and waits to go on.
alter table turns drop constraint turns_state_check;
alter table turns
  add constraint turns_state_check check (state in ('running', 'parked', 'ready', 'done', 'failed', 'cancelled')),
  -- Untrusted texts that were shown to the model in this turn: user ids and paths of files.
  add column taint text[] not null default '{}';
create index turns_ready on turns (agent, room_id) where state in ('parked', 'ready');
alter table steps drop constraint steps_state_check;
alter table steps add constraint steps_state_check check (state in ('started', 'asked', 'done'));

alter table ephemeris
  -- A sub-agent's: shown to people, not to the agent.
  add column sub_agent text,
  -- The untrusted texts that its turn had read.
  add column taint text[] not null default '{}';

-- Untrusted texts in a content that is kept with its window.
alter table windows add column taint text[] not null default '{}';
alter table files add column tainted boolean not null default false;
alter table file_versions add column tainted boolean not null default false;

-- The strictest that agents may do here without asking; null: what each agent's own mode says.
alter table rooms add column mode text check (mode in ('none', 'read', 'create', 'update', 'delete'));

-- Key of an earlier row for the same room whose event this one is about (a reaction, an edit): its event id is
-- filled in when this one is sent.
alter table outbox add column about text;
