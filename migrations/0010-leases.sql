-- The processes on this database. Whoever does not renew `until` in time counts as dead.
create table processes (
  name text primary key,
  -- Drawn at each start: whoever starts under a name takes the place of the one before.
  session text not null,
  until timestamptz not null
);

-- Rooms and agents are dealt into shards by a hash of their ids; the session that holds a shard works on what is in it.
create table shards (
  shard integer primary key,
  name text,
  session text,
  until timestamptz
);
insert into shards (shard) select generate_series(0, 63);
