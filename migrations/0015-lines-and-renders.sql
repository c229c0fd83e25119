-- Lines and characters (UTF-16 code units) of a text, so that its beginning can be shown without reading all of it.
-- null: not counted yet.
alter table files add column line_count integer, add column char_count integer;

-- The tools that were offered with a render.
create table toolsets (
  hash text primary key,
  definitions text not null,
  created_at timestamptz not null default now()
);
alter table renders
  add column toolset text,
  -- Who was shown it; null: the agent itself.
  add column sub_agent text;

-- True if a file came with an event that not all of an audience may read: in rooms whose history is closed to
-- newcomers. Former versions of the file count, too.
create function came_too_early(audience text[], file_share text, file_path text) returns boolean
language sql stable as $$
  select exists (
    select 1 from (
      select event_id from files where share = file_share and path = file_path
      union all
      select event_id from file_versions where share = file_share and path = file_path
    ) f join events e on e.event_id = f.event_id
    where e.position < history_floor(audience, e.room_id))
$$;
