-- What a message said before it was edited: an edit may be redacted alone.
alter table events add column original jsonb;
