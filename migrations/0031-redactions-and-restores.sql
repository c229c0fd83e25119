-- Rooms and people in whose places agents have repeated redacted words: whoever was shown something from there may
-- have read them. The event's own room is the first.
alter table redactions add column places text[] not null default '{}';
update redactions set places = array[room_id];
alter table redactions drop column room_id;
create index outbox_of_turn on outbox (turn_id) where turn_id is not null;

-- When it was noticed that an older copy of the database goes on: from then on operations have other numbers than those
-- that were given after the copy was made.
create table restores (
  noticed_at timestamptz primary key default now()
);

-- Session of the process that carries out a person's command: while it lives, no other does, whoever has the room.
alter table events add column runner text;
