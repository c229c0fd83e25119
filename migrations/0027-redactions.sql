-- Redactions whose words are still to be blanked where agents have repeated them.
create table redactions (
  -- The event that was redacted, its room, and when it had come.
  event_id text primary key,
  room_id text not null,
  since timestamptz not null,
  -- Fingerprints of its words: see lib/repeats.ts. The words themselves are kept nowhere.
  prints text[] not null,
  redacted_at timestamptz not null default now(),
  -- When it is looked at next.
  due_at timestamptz not null default now()
);
create index redactions_due on redactions (due_at);

-- Turns that may have seen an event are those that had not ended when it came.
create index turns_ended on turns (ended_at);

-- Events that the text of a row shows, as `!show turn` does: it is taken back with any of them.
alter table outbox add column shows text[];
create index outbox_shows on outbox using gin (shows) where shows is not null;
create index outbox_files on outbox (room_id, id) where kind = 'file';

-- Attachments of `!show turn` that were sent before this version: they show the events of the renders that are still
-- kept of their turn, and are not kept as files.
update outbox o set shows = (
  select coalesce(array_agg(distinct shown), '{}')
  from agents a
    join turns t on t.agent = a.name and t.number = substring(o.content->>'name' from '[0-9]{1,15}')::bigint
    join renders r on r.turn_id = t.id, unnest(r.event_ids) shown
  where a.user_id = o.sender)
where o.kind = 'file' and o.content->>'name' ~ '^turn-[0-9]{1,15}\.md$';
delete from files f using outbox o where o.shows is not null and o.event_id = f.event_id;
delete from file_versions f using outbox o where o.shows is not null and o.event_id = f.event_id;
update events e set media_after = null,
  media = '{"state": "missing", "reason": "what an agent was shown is not kept as a file"}'
from outbox o where o.shows is not null and o.event_id = e.event_id;
