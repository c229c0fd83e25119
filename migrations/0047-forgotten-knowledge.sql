-- Knowledge is forgotten by the room in which it was kept, and by the person for whom.
alter table knowledge
  -- The conversation in which it was kept ('': the agent's home); of what was kept before, nobody knows.
  add column room_id text,
  -- The first of the people for whom it was kept.
  add column requester text,
  -- A file is cut anew when it has changed; not where a part of it was forgotten, which would come back.
  add column is_followed boolean not null default true;
