-- Silences in rooms where an agent has left something open: a question, a promise, a todo. While no person says anything
-- there, the agent is woken, each time after twice as long.
create table silences (
  agent text not null references agents (name),
  room_id text not null,
  -- Turn that has left it open: for whom it worked, the wakes work.
  turn_id bigint not null,
  -- Place in the room's history behind which a person's word ends it.
  place double precision not null,
  -- When the agent has said it; null: it did not.
  question_at timestamptz,
  promise_at timestamptz,
  since timestamptz not null default now(),
  -- Silence after which the agent is woken next.
  wait_seconds integer not null,
  -- How often it was woken for it.
  rung integer not null default 0,
  next_at timestamptz not null,
  primary key (agent, room_id)
);
create index silences_due on silences (next_at);

alter table conversations
  -- Until then the agent leaves nothing open here.
  add column quiet_until timestamptz,
  -- When it last had time to tidy its memory of this conversation.
  add column tidied_at timestamptz;
