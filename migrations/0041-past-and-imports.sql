-- History of rooms that is read further back in the background, after an agent has joined: one row while there is more.
create table past_readings (
  room_id text not null,
  user_id text not null,
  -- The join that began it.
  join_event text not null,
  -- Where the homeserver goes on; null until the newest part is read, which agents are shown at once.
  token text,
  -- Places that are free for it: behind `bottom`, and before the join, `most` of them at equal distances.
  bottom double precision not null,
  distance double precision not null,
  most integer not null,
  placed integer not null default 0,
  -- Nothing older is read.
  oldest timestamptz not null,
  due_at timestamptz not null default now(),
  primary key (room_id, user_id)
);
create index past_readings_due on past_readings (due_at) where token is not null;

-- The one row: by which exports are known that come from this database, or from a copy of it.
create table installation (id uuid not null default gen_random_uuid());
insert into installation default values;

-- Of what was imported: its id in the export, the room in which it was, and the event, if it was one. A redaction of that
-- reaches it.
alter table interactions add column origin text, add column origin_room text, add column origin_event text;
create unique index interactions_of_origin on interactions (agent, origin) where origin is not null;
create index interactions_of_origin_event on interactions (origin_event) where origin_event is not null;
