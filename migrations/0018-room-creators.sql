-- Who stands above a room's power levels: in room versions 12 and later, its creators.
drop function room_creator;
create function room_creators(room text) returns text[]
language sql stable as $$
  select coalesce((
    select array[sender] || array(
      select jsonb_array_elements_text(content->'additional_creators') where jsonb_typeof(content->'additional_creators') = 'array')
    from room_state
    where room_id = room and type = 'm.room.create'
      and case when content->>'room_version' ~ '^[0-9]{1,4}$' then (content->>'room_version')::int >= 12 end
  ), '{}')
$$;
