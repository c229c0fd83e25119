-- Who may read what. An audience is the list of humans who will see or hear of it; an empty one may read nothing.
-- A source is a room, or '' for the agent's home, which only its owner may read.
create function may_read(audience text[], source text, owner text) returns boolean
language sql stable as $$
  select cardinality(audience) > 0 and case
    when source = '' then audience <@ array[owner]
    else not exists (
      select 1 from unnest(audience) reader
      where not exists (
        select 1 from members m
        where m.room_id = source and m.user_id = reader and m.membership = 'join'))
  end
$$;

-- Where the part of a room's history begins that all of an audience may read: in rooms whose history is closed to
-- newcomers, the latest arrival decides.
create function history_floor(audience text[], source text) returns double precision
language sql stable as $$
  select case
    when (select content->>'history_visibility' from room_state where room_id = source and type = 'm.room.history_visibility')
      in ('joined', 'invited')
    then coalesce((select max(joined_position) from members where room_id = source and user_id = any (audience)), 0)
    else 0
  end
$$;

-- Who stands above a room's power levels: in room versions 12 and later, its creator.
create function room_creator(room text) returns text
language sql stable as $$
  select case when content->>'room_version' ~ '^[0-9]{1,4}$' and (content->>'room_version')::int >= 12 then sender end
  from room_state where room_id = room and type = 'm.room.create'
$$;
