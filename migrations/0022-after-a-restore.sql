-- Ids come again where an older copy of the database goes on: what a turn sends is known by this as well. Turns that
-- are older have none.
alter table turns add column salt text not null default '';

-- Up to where the bot has read a room; agents have `sync_token`.
alter table rooms add column bot_token text;
