-- How a conversation's log is shown: see LogState in database/turns.ts. Lost, it costs nothing but a cached prompt.
alter table conversations add column log jsonb;

-- Length of what a call sent, and of its beginning that was the same in the conversation's previous call.
alter table usage
  add column prompt_chars integer,
  add column prefix_chars integer;
