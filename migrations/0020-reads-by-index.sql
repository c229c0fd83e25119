-- Indexes for reads that went through a whole room or table. None serves a statement that does not name its condition.
create index events_not_shown on events (room_id, position) where not shown;
create index wakes_of_event on wakes (event_id) where event_id is not null;
-- By its hash: it may be a text of any length.
create index events_in_thread on events using hash ((content->'m.relates_to'->>'event_id'))
  where content->'m.relates_to'->>'rel_type' = 'm.thread';
