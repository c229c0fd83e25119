-- Audiences know who else may come to hear: anybody, where a room is open, and owners of other agents in it. What was
-- made in a room, or from it, has a place in its history, as events have, and is closed to whoever came later.

-- Place of whatever is made now: behind all events that have come so far.
create function place_now() returns double precision
language sql volatile as $$ select last_value::double precision from event_seq $$;

-- From which place on a room's history was closed to newcomers, or open to them. Before the first place, as there.
create table history_visibility (
  room_id text not null,
  position double precision not null,
  closed boolean not null,
  primary key (room_id, position)
);
insert into history_visibility (room_id, position, closed)
select room_id, position, coalesce(content->>'history_visibility' in ('joined', 'invited'), false) from room_state
where type = 'm.room.history_visibility'
union
select room_id, position, coalesce(content->>'history_visibility' in ('joined', 'invited'), false) from events
where type = 'm.room.history_visibility' and state_key = '' and routed_at is not null and redacted_at is null
on conflict do nothing;

-- Rooms that we are in already have rules of which we were not told. Until they are read, they count as open.
insert into room_state (room_id, type, content, sender, position)
select distinct room_id, 'm.room.join_rules', '{}'::jsonb, '', -1 from members where kind <> 'human' and membership = 'join';

-- True if anybody may join one of the rooms whose members may join this one, or one from which they may come. We know
-- the rooms that we are in; any other counts as open.
create function has_open_door(room text) returns boolean
language sql stable as $$
  with recursive doors(room_id, rule, allow) as (
    select room_id, content->>'join_rule', content->'allow' from room_state
    where room_id = $1 and type = 'm.room.join_rules'
    union
    select next, s.content->>'join_rule', s.content->'allow'
    from doors cross join lateral (
        select case when one->>'type' = 'm.room_membership' then one->>'room_id' end as next
        from jsonb_array_elements(case when jsonb_typeof(allow) = 'array' then allow else '[]' end) one
      ) allowed
      left join room_state s on s.room_id = next and s.type = 'm.room.join_rules' and exists (
        select 1 from members m where m.room_id = next and m.kind <> 'human' and m.membership = 'join')
    where doors.rule in ('restricted', 'knock_restricted')
  )
  select coalesce(bool_or(coalesce(rule not in ('invite', 'knock', 'restricted', 'knock_restricted'), true)), true) from doors
$$;

-- True if anybody may read a room, or join it unasked. Without a rule for joining a room is by invitation.
create function is_open(room text) returns boolean
language sql stable as $$
  select coalesce(bool_or(case
    when type = 'm.room.history_visibility' then coalesce(content->>'history_visibility' = 'world_readable', false)
    when content->>'join_rule' in ('invite', 'knock') then false
    when content->>'join_rule' in ('restricted', 'knock_restricted') then has_open_door($1)
    else true
  end), false)
  from room_state where room_id = $1 and type in ('m.room.history_visibility', 'm.room.join_rules')
$$;

-- Those who see what stands in a place: a room, a user ('@…'), or '' for the agent's home. In a room: the humans in it;
-- '*!room' for anybody, who is in no room but may come into this one; and '*@user' for the owner of another agent, who is
-- not in it, and whose thoughts room shows them what that agent hears.
create or replace function audience_of(place text, owner text) returns text[]
language sql stable as $$
  select case
    when $1 = '' then array[$2]
    when $1 like '@%' then array[$1]
    else array(
      select user_id from members where room_id = $1 and kind = 'human' and membership = 'join'
      union all
      select '*' || $1 where is_open($1)
      union all
      select distinct '*' || a.owner from members m join agents a on a.user_id = m.user_id
      where m.room_id = $1 and m.kind = 'agent' and m.membership = 'join' and a.owner <> $2 and a.deleted_at is null
        and not exists (select 1 from members o where o.room_id = $1 and o.user_id = a.owner and o.membership = 'join')
      order by 1)
  end
$$;

-- As before; anybody reads the room that is open to them and nothing else, and owners of other agents what these hear.
create or replace function may_read(audience text[], source text, owner text) returns boolean
language sql stable as $$
  select cardinality($1) > 0 and case
    when $2 = '' then $1 <@ array[$3]
    when $2 like '@%' then $1 <@ array[$2]
    else not exists (
      select 1 from unnest($1) reader
      where reader <> '*' || $2
        and not exists (
          select 1 from members m
          where m.room_id = $2 and m.user_id = ltrim(reader, '*') and m.membership = 'join')
        and (reader not like '*@%' or not exists (
          select 1 from agents a join members m on m.user_id = a.user_id
          where a.owner = substr(reader, 2) and a.deleted_at is null and m.room_id = $2 and m.membership = 'join')))
  end
$$;

-- The place at which the last of an audience came into a room; of an owner who is not in it, their first agent there.
create function arrival_of(audience text[], source text) returns double precision
language sql stable as $$
  select coalesce(max(coalesce(
    (select m.joined_position from members m where m.room_id = $2 and m.user_id = ltrim(reader, '*') and m.membership = 'join'),
    (select min(m.joined_position) from agents a join members m on m.user_id = a.user_id
      where reader like '*@%' and a.owner = substr(reader, 2) and m.room_id = $2 and m.membership = 'join'))), 0)
  from unnest($1) reader
$$;

-- The stretches of a room's history that not all of an audience may read: those in which it was closed, before the last
-- of them came.
create function unseen_by(audience text[], source text) returns table (since double precision, until double precision)
language sql stable as $$
  select began, least(ended, (select arrival_of($1, $2))) from (
    select case when row_number() over (order by position) = 1 then '-infinity' else position end as began,
      coalesce(lead(position) over (order by position), 'infinity') as ended, closed
    from history_visibility where room_id = $2) stretches
  where closed and began < (select arrival_of($1, $2))
$$;

create function is_unseen(audience text[], source text, place double precision) returns boolean
language sql stable as $$ select exists (select 1 from unseen_by($1, $2) where $3 >= since and $3 < until) $$;

-- Where the part of a room's history begins of which an audience may read something.
create or replace function history_floor(audience text[], source text) returns double precision
language sql stable as $$ select coalesce((select until from unseen_by($1, $2) where since = '-infinity'), 0) $$;

-- True if a text made at this place, from these sources, may be shown to an audience that is here.
create function may_show(audience text[], here text, sources text[], owner text, place double precision) returns boolean
language sql stable as $$
  select not exists (
    select 1 from unnest($3) s where (s <> $2 and not may_read($1, s, $4)) or is_unseen($1, s, $5))
$$;

-- True if all that an audience was shown of a source may be passed on to others.
create function may_pass_on(others text[], audience text[], source text, owner text) returns boolean
language sql stable as $$
  select may_read($1, $3, $4)
    and not exists (select 1 from unseen_by($1, $3) where until > (select arrival_of($2, $3)))
$$;

-- The file that an agent's settings name for its scratchpad.
create function scratchpad_of(agent text) returns text
language sql stable as $$
  select case when text_content is json object then text_content::jsonb->>'scratchPadFile' end
  from files where share = 'agents' and path = '/' || $1 || '/agent.json'
$$;

-- Owners of the agents whose scratchpad this file is. One below an agent's own name is no other's.
create function scratchpad_owners(file text) returns text[]
language sql stable as $$
  select case when $1 is null or exists (select 1 from agents where name = split_part(split_part($1, ':/', 2), '/', 1)) then '{}' else array(
    select distinct owner from agents where deleted_at is null and scratchpad_of(name) = $1) end
$$;

-- Of what is there already, the place is found by its time, as far as it can have been made where history was closed.
create index events_by_time on events (received_at, seq);
create function place_at(moment timestamptz) returns double precision
language sql stable as $$
  select coalesce((select seq from events where received_at <= $1 order by received_at desc, seq desc limit 1), 0)::double precision
$$;
create function was_closed(sources text[]) returns boolean
language sql stable as $$ select exists (select 1 from history_visibility where closed and room_id = any ($1)) $$;

-- Whatever a turn makes has the place at which it began: it may come of all that the turn was shown.
alter table turns add column place double precision not null default 0;
update turns set place = place_at(started_at) where was_closed(sources || room_id);
alter table turns alter column place set default place_now();

alter table ephemeris add column place double precision not null default 0;
update ephemeris set place = place_at(created_at) where was_closed(sources || room_id::text);
alter table ephemeris alter column place set default place_now();

alter table operations add column place double precision not null default 0;
update operations set place = place_at(created_at) where was_closed(sources || room_id);
alter table operations alter column place set default place_now();

alter table todos add column place double precision not null default 0;
update todos set place = place_at(created_at) where was_closed(sources || room_id);
alter table todos alter column place set default place_now();

alter table schedules add column place double precision not null default 0;
update schedules set place = place_at(created_at) where was_closed(sources || room_id);
alter table schedules alter column place set default place_now();

alter table wakes add column place double precision not null default 0;
update wakes set place = place_at(created_at) where turn_id is null and was_closed(sources || room_id);
alter table wakes alter column place set default place_now();

alter table windows add column place double precision not null default 0;
update windows set place = place_at(used_at) where was_closed(sources || room_id);
alter table windows alter column place set default place_now();

alter table files add column place double precision not null default 0;
update files set place = place_at(updated_at) where share = 'rooms' and was_closed(array[root]);
alter table files alter column place set default place_now();

alter table file_versions add column place double precision not null default 0;
update file_versions set place = place_at(written_at) where share = 'rooms' and was_closed(array[root]);

drop function place_at;
drop function was_closed;
drop index events_by_time;

-- Of files, those that not all of an audience may see as they are: written, or come with an event, before the last of
-- them came into a room whose history was closed. Where a file came with an event, what it was before counts, too.
drop function came_too_early;
create function too_early(audience text[], file_share text, paths text[]) returns setof text
language sql stable as $$
  with known as materialized (
    select path, case when share = 'rooms' then root end as room_id, place from files
    where share = $2 and path = any ($3)
    union all
    select f.path, e.room_id, e.position from (
      select path, event_id from files where share = $2 and path = any ($3) and event_id is not null
      union all
      select path, event_id from file_versions where share = $2 and path = any ($3) and event_id is not null
    ) f join events e on e.event_id = f.event_id
  ), unseen as materialized (
    select r.room_id, u.since, u.until
    from (select distinct room_id from known where room_id is not null) r, lateral unseen_by($1, r.room_id) u
  )
  select distinct path from known join unseen using (room_id) where place >= since and place < until
$$;
create function came_too_early(audience text[], file_share text, file_path text) returns boolean
language sql stable as $$ select exists (select 1 from too_early($1, $2, array[$3])) $$;
