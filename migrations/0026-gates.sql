alter table turns
  -- The humans who were there at every look of the turn since `sources` were begun; null before the first look.
  add column audience text[],
  -- Sources of renders from before the turn had to look anew: they may not be said any more, and the renders are kept.
  add column former_sources text[] not null default '{}',
  -- Rises with every edit and redaction of a message that the turn works on.
  add column changes integer not null default 0;

-- People whose join of a room is stored and not routed yet: the homeserver lets them hear already.
create function arriving(room text) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct e.state_key), '{}') from events e
  where e.room_id = room and e.routed_at is null and e.source <> 'history'
    and e.type = 'm.room.member' and e.content->>'membership' = 'join' and e.state_key is not null
    and not exists (select 1 from agents a where a.user_id = e.state_key)
    and not exists (
      select 1 from members m
      where m.user_id = e.state_key and (m.kind <> 'human' or (m.room_id = room and m.membership = 'join')))
$$;

-- True if everybody who hears what is said in a place now may read all that it was made from. `here` is the room of the
-- conversation that says it, and `rendered` the humans for whom the sources were rendered there: who came later may
-- read no less of the rooms' histories than they.
create function may_hear(place text, here text, rendered text[], sources text[], owner text) returns boolean
language sql stable as $$
  with people as (
    select audience_of(place, owner) || arriving(place) as everybody, arriving(place) as coming
  ), hearers as (
    select everybody, coming, array(select unnest(everybody) except select unnest(rendered)) as newcomers from people
  )
  select coalesce(bool_and(
    (s = place or may_read(everybody, s, owner))
    and (place <> here or newcomers = '{}' or (
      not exists (select 1 from unseen_by(newcomers, s) where until > arrival_of(rendered, s))
      and (s <> place or not (newcomers && coming) or coalesce((
        select content->>'history_visibility' not in ('joined', 'invited') from room_state
        where room_id = place and type = 'm.room.history_visibility'), true))))
  ), true)
  from hearers, unnest(sources) s
$$;
