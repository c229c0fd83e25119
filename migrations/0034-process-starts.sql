-- When a process has started: what waited before may have been answered in a life that an older copy of the database
-- does not remember.
alter table processes add column started_at timestamptz not null default now();
