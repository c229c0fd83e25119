-- Audiences hold those who may come in without being asked: people who are invited, and members of the rooms whose
-- members may join. What is said before they come, they may read when they have come.

-- The rules for joining of a room, and of the rooms from whose members it lets people in, through any number of them. Of
-- a room that we are not in we know no rule, nor what is not a room.
create function doors_of(room text) returns table (door text, rule text)
language sql stable as $$
  with recursive doors(door, rule, allow) as (
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
  select door, rule from doors
$$;

create or replace function has_open_door(room text) returns boolean
language sql stable as $$
  select coalesce(bool_or(coalesce(rule not in ('invite', 'knock', 'restricted', 'knock_restricted'), true)), true) from doors_of($1)
$$;

-- Those who see what stands in a place: a room, a user ('@…'), or '' for the agent's home. In a room: the humans in it;
-- '*!room' for anybody, who is in no room but may come into this one; '*@user' for the owner of another agent, who is not
-- in it, and whose thoughts room shows them what that agent hears; '*!room @user' for somebody who is invited to this
-- room; and '*!room !door' for the people of another room, who may come into this one.
create or replace function audience_of(place text, owner text) returns text[]
language sql stable as $$
  select case
    when $1 = '' then array[$2]
    when $1 like '@%' then array[$1]
    else array(
      select case membership when 'join' then user_id else '*' || $1 || ' ' || user_id end from members
      where room_id = $1 and kind = 'human' and membership in ('join', 'invite')
      union all
      select '*' || $1 where is_open($1)
      union all
      select distinct '*' || $1 || ' ' || door
      from room_state s cross join lateral doors_of(s.room_id) where s.room_id = $1 and s.type = 'm.room.join_rules'
        and s.content->>'join_rule' in ('restricted', 'knock_restricted') and door <> $1
      union all
      select distinct '*' || a.owner from members m join agents a on a.user_id = m.user_id
      where m.room_id = $1 and m.kind = 'agent' and m.membership = 'join' and a.owner <> $2 and a.deleted_at is null
        and not exists (select 1 from members o where o.room_id = $1 and o.user_id = a.owner and o.membership = 'join')
      order by 1)
  end
$$;

-- The user, or the room with its people, that is meant by one of an audience.
create function name_of(reader text) returns text
language sql immutable as $$ select case when $1 like '*% %' then split_part($1, ' ', 2) else ltrim($1, '*') end $$;

-- As before; those who may come into a room read this one, and of others what all of them are in.
create or replace function may_read(audience text[], source text, owner text) returns boolean
language sql stable as $$
  select cardinality($1) > 0 and case
    when $2 = '' then $1 <@ array[$3]
    when $2 like '@%' then $1 <@ array[$2]
    else not exists (
      select 1 from unnest($1) reader
      where split_part(reader, ' ', 1) <> '*' || $2
        and not exists (
          select 1 from members m
          where m.room_id = $2 and m.user_id = name_of(reader) and m.membership = 'join')
        and (reader not like '*@%' or not exists (
          select 1 from agents a join members m on m.user_id = a.user_id
          where a.owner = substr(reader, 2) and a.deleted_at is null and m.room_id = $2 and m.membership = 'join'))
        and (reader not like '*% !%' or exists (
          select 1 from members d
          where d.room_id = name_of(reader) and d.kind = 'human' and d.membership in ('join', 'invite')
            and not exists (
              select 1 from members m where m.room_id = $2 and m.user_id = d.user_id and m.membership = 'join'))))
  end
$$;

-- The place at which the last of an audience came into a room; of an owner who is not in it, their first agent there.
create or replace function arrival_of(audience text[], source text) returns double precision
language sql stable as $$
  select coalesce(max(coalesce(
    (select m.joined_position from members m where m.room_id = $2 and m.user_id = name_of(reader) and m.membership = 'join'),
    (select min(m.joined_position) from agents a join members m on m.user_id = a.user_id
      where reader like '*@%' and a.owner = substr(reader, 2) and m.room_id = $2 and m.membership = 'join'),
    (select max(m.joined_position) from members d join members m on m.user_id = d.user_id
      where reader like '*% !%' and d.room_id = name_of(reader) and d.kind = 'human' and d.membership in ('join', 'invite')
        and m.room_id = $2 and m.membership = 'join'))), 0)
  from unnest($1) reader
$$;

-- People whose coming is stored and not routed yet, or their invitation: the homeserver lets them hear already.
create or replace function arriving(room text) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct e.state_key), '{}') from events e
  where e.room_id = room and e.routed_at is null and e.source <> 'history'
    and e.type = 'm.room.member' and e.content->>'membership' in ('join', 'invite') and e.state_key is not null
    and not exists (select 1 from agents a where a.user_id = e.state_key)
    and not exists (
      select 1 from members m
      where m.user_id = e.state_key and (m.kind <> 'human' or (m.room_id = room
        and (m.membership = 'join' or (m.membership = 'invite' and e.content->>'membership' = 'invite')))))
$$;

-- True if a room is encrypted, or ever was, by what the homeserver has told so far, routed or not.
create function is_encrypted(room text) returns boolean
language sql stable as $$
  select exists (select 1 from room_state where room_id = $1 and type = 'm.room.encryption')
    or exists (
      select 1 from events where room_id = $1 and routed_at is null and type = 'm.room.encryption' and state_key = '')
$$;
