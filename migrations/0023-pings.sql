-- Pings of the homeserver that one of our processes asked for, or heard. Two bridges with one registration show by it:
-- what one has asked for is heard by the other. See src/routing/sole-bridge.ts.
create table pings (
  id text primary key,
  -- Null: nobody on this database has asked for it.
  asked_at timestamptz,
  heard_at timestamptz
);
