-- Number by which agents are shown an event of a room's history: counted in the room, it never comes to mean another.
alter table events add column number bigint;
update events e set number = n.number
from (select seq, row_number() over (partition by room_id order by position, seq) as number from events where shown) n
where n.seq = e.seq;
create unique index events_number on events (room_id, number);

-- Locks the room's numbers until the transaction ends, so that nobody else counts on from the same one.
create function last_number(room text) returns bigint
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(room, 0));
  return (select coalesce(max(number), 0) from events where room_id = room);
end $$;
