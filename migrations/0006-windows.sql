-- Windows on the desk of a conversation. A window that is always there (persona, scratchpad, histories) has a row
-- only while something was done to it in the running turn: its `src` is its id.
create table windows (
  id bigint generated always as identity primary key,
  agent text not null references agents (name) on delete cascade,
  room_id text not null,
  src_type text not null check (src_type in ('file', 'search', 'page', 'system')),
  src text not null,
  -- Everything else that its source needs to be read again, as JSON.
  arguments text not null default '',
  window_id text not null generated always as (case when src_type = 'system' then src else src_type || '_' || id::text end) stored,
  title text,
  attributes jsonb not null default '{}',
  content_type text not null default '',
  -- Text that was read of the source; null where it is read anew for each step.
  content text,
  -- Rooms and users whose content is in it, as may_read names them.
  sources text[] not null default '{}',
  state text not null default 'normal' check (state in ('normal', 'maximized', 'minimized')),
  pinned boolean not null default false,
  -- Turns, the running one included, after which it closes unless it is pinned.
  turns_left integer not null,
  -- null: from where it usually is, such as the end of a history.
  top integer,
  height integer not null,
  -- Questions and answers about the content: [{query, answer, version}].
  queries jsonb not null default '[]',
  -- Names the last operation on it: the same one is not carried out twice.
  key text,
  used_at timestamptz not null default clock_timestamp(),
  unique (agent, room_id, src_type, src, arguments)
);
