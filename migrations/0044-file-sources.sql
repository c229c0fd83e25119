-- Files are behind the walls of all that they were made from, and not of their room alone.
alter table files
  -- Rooms and people whose content may be in it, as `may_read` names them, beside the one whose file it is: whoever may not
  -- read all of them may not read it. An agent's home stands there by its owner's name.
  add column sources text[] not null default '{}';
alter table file_versions add column sources text[] not null default '{}';

-- Of files, those that not all of an audience may see as they are: made from what they may not all read; or written, or come
-- with an event, before the last of them came into a room whose history was closed. Where a file came with an event, what it
-- was before counts, too.
create or replace function too_early(audience text[], file_share text, paths text[]) returns setof text
language sql stable as $$
  with known as materialized (
    select path, case when share = 'rooms' then root end as room_id, place, sources from files
    where share = $2 and path = any ($3)
    union all
    select f.path, e.room_id, e.position, '{}' from (
      select path, event_id from files where share = $2 and path = any ($3) and event_id is not null
      union all
      select path, event_id from file_versions where share = $2 and path = any ($3) and event_id is not null
    ) f join events e on e.event_id = f.event_id
  ), named as materialized (
    select distinct source from known, unnest(sources) source
  ), closed as materialized (
    select source from named where not may_read($1, source, '')
  ), unseen as materialized (
    select r.room_id, u.since, u.until
    from (select room_id from known where room_id is not null union select source from named) r,
      lateral unseen_by($1, r.room_id) u
  )
  select path from known where exists (select 1 from closed where source = any (sources))
  union
  select path from known k join unseen u on u.room_id = k.room_id or u.room_id = any (k.sources)
  where place >= since and place < until
$$;
