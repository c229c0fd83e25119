-- Redacted events, which are few: whoever keeps a render asks if one of its events is among them.
create index events_redacted on events (event_id) where redacted_at is not null;
