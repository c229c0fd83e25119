-- Content of a message before it was edited: an edit may be redacted alone.
alter table events add column original jsonb;
