-- Sandboxes: each conversation has one of its own, from its first use on.
create table sandboxes (
  agent text not null references agents (name),
  room_id text not null,
  -- As its host knows it.
  name text not null unique,
  -- The last use by anybody.
  used_at timestamptz not null default now(),
  -- It was started, and we have not stopped it since.
  is_awake boolean not null default false,
  -- Somebody stops it now: whoever wants to use it waits.
  stopping_since timestamptz,
  -- Sources that those had been shown who have commanded it, as `may_read` names them: it may hold all of that.
  sources text[] not null default '{}',
  -- Commands that were given in it so far.
  commands integer not null default 0,
  primary key (agent, room_id)
);

-- Commands in sandboxes. Each is written here before it is sent, so that none runs twice.
create table sandbox_commands (
  -- Of its operation; the runner knows the command by it.
  key text primary key,
  agent text not null,
  room_id text not null,
  -- Number by which people name it; its output is in /workspace/.output under this number.
  number integer not null,
  -- Run of the sandbox in which it was to start.
  boot text not null,
  command text not null,
  -- People for whom it runs.
  requesters text[] not null,
  is_background boolean not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  -- How it ended, with its output; null: that is not known yet.
  outcome jsonb
);
create index sandbox_commands_open on sandbox_commands (agent, room_id) where outcome is null;
create index sandbox_commands_started on sandbox_commands (started_at);

-- Name of this installation: its sandboxes are marked with it, so that it touches nobody else's.
create table sandbox_installation (
  is_only boolean primary key default true check (is_only),
  id text not null
);
