-- True if an agent may begin a turn in a room now: none is open there, and fewer than `most` are elsewhere. Volatile,
-- so that a statement that had to wait for another to lock the agent's row sees what that one has opened.
create function may_open_turn(agent_name text, room text, most integer) returns boolean
language sql volatile as $$
  select count(*) filter (where room_id = room) = 0 and count(*) filter (where room_id <> room) < most
  from turns where agent = agent_name and state = 'running'
$$;
