-- Sandboxes on several hosts.
alter table sandboxes
  -- Host on which it is, by its name in the configuration; it is chosen once.
  add column host text not null default 'default',
  -- When its files were last put into the backup that there is; null: there is none.
  add column backed_up_at timestamptz,
  -- When somebody began to back them up.
  add column backup_tried_at timestamptz,
  -- It was placed anew: its files are still to be taken from the backup.
  add column is_bare boolean not null default false,
  -- Somebody takes them from there now.
  add column restoring_since timestamptz,
  add column created_at timestamptz not null default now();

-- Containers on hosts that have come back, whose conversation is on another one now: their files are kept for a while.
create table stray_sandboxes (
  host text not null,
  name text not null,
  found_at timestamptz not null default now(),
  primary key (host, name)
);
