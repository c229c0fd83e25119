-- Who may do what: the configuration seeds it, and what people set by hand stands above the configuration.
create table permissions (
  actor text primary key,
  -- null: taken away by hand.
  level text check (level in ('none', 'chat', 'use', 'operate', 'admin')),
  -- Who set it by hand; null: it is the configuration's own.
  set_by text,
  set_at timestamptz not null default now(),
  check (level is not null or set_by is not null)
);

-- Who changed what, when, from what, to what.
create table audit (
  id bigint generated always as identity primary key,
  -- The event that commanded it: a command that runs again changes nothing again.
  key text not null unique,
  actor text not null,
  subject text not null,
  before text,
  after text,
  at timestamptz not null default now()
);

alter table agents add paused_at timestamptz, add deleted_at timestamptz;

alter table rooms drop constraint rooms_kind_check,
  add constraint rooms_kind_check check (kind in ('chat', 'thoughts', 'control'));
