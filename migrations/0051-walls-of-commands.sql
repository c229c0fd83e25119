-- Commands in sandboxes have walls as operations have.
alter table sandbox_commands
  -- Sources of what those had been shown who gave it, and of all that its sandbox may hold, as `may_read` names them.
  add column sources text[] not null default '{}',
  -- Place in history of its operation.
  add column place double precision not null default 0;
update sandbox_commands c set sources = s.sources from sandboxes s where s.agent = c.agent and s.room_id = c.room_id;
update sandbox_commands c set place = o.place from operations o where o.key = c.key;
