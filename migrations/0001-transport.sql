-- Every Matrix event that was pushed or swept, stored once, before the homeserver hears 200.
create sequence event_seq;
create table events (
  seq bigint primary key default nextval('event_seq'),
  event_id text not null unique,
  room_id text not null,
  type text not null,
  state_key text,
  sender text not null,
  sent_at timestamptz not null,
  content jsonb not null,
  -- The event that this one replaces (an edit) or redacts.
  replaces text,
  redacts text,
  -- Place in the room's history: the order of arrival, except for events that a sweep found late.
  position double precision not null,
  source text not null check (source in ('push', 'sweep', 'history')),
  received_at timestamptz not null default now(),
  routed_at timestamptz,
  -- Part of what agents see as history.
  shown boolean not null default false,
  edited_at timestamptz,
  redacted_at timestamptz
);
create index events_pending on events (room_id, seq) where routed_at is null;
create index events_history on events (room_id, position) where shown;
create index events_replaces on events (replaces) where replaces is not null;
create index events_redacts on events (redacts) where redacts is not null;

-- Events of the homeserver that could not be stored; kept as they came, for people to look at.
create table quarantine (
  digest text primary key,
  reason text not null,
  raw bytea not null,
  received_at timestamptz not null default now()
);

-- Projections of room state. `position` guards against late events overwriting newer ones.
create table rooms (
  room_id text primary key,
  kind text not null default 'chat' check (kind in ('chat', 'thoughts')),
  shown_events bigint not null default 0,
  shown_chars bigint not null default 0,
  last_shown_at timestamptz
);
create table room_state (
  room_id text not null,
  type text not null,
  content jsonb not null,
  sender text not null,
  position double precision not null,
  primary key (room_id, type)
);
create table members (
  room_id text not null,
  user_id text not null,
  membership text not null,
  display_name text,
  direct boolean not null default false,
  kind text not null check (kind in ('human', 'agent', 'bot')),
  position double precision not null,
  -- Where the current stretch of being joined began: rooms with closed history show nothing older.
  joined_position double precision,
  primary key (room_id, user_id)
);
create index members_of_user on members (user_id, membership);

create table agents (
  name text primary key,
  user_id text not null unique,
  owner text not null,
  suffix text not null,
  device_id text not null,
  registered_at timestamptz,
  profile text,
  sync_token text,
  thoughts_room text,
  thoughts_posted bigint not null default 0,
  turns bigint not null default 0,
  wake_up_timer_seconds integer,
  last_turn_at timestamptz not null default now(),
  created_at timestamptz not null default now()
);

-- Everything that is to be sent, in order per room, with a frozen body and a transaction id that never changes. What
-- belongs to no room (a profile) has the user's id for a room.
create table outbox (
  id bigint generated always as identity primary key,
  key text not null unique,
  room_id text not null,
  sender text not null,
  kind text not null check (kind in ('message', 'file', 'join', 'leave', 'profile')),
  content jsonb not null,
  turn_id bigint,
  state text not null default 'pending' check (state in ('pending', 'sent', 'failed')),
  attempts integer not null default 0,
  first_tried_at timestamptz,
  event_id text,
  error text,
  created_at timestamptz not null default now(),
  settled_at timestamptz
);
create index outbox_pending on outbox (room_id, id) where state = 'pending';
create index outbox_event on outbox (event_id) where event_id is not null;
