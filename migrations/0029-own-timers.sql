-- Version of agent.json that the timer was last taken from, or that an agent had when it set its timer itself, which
-- holds until the bridge starts again; null: the file's timer counts. And the timer that stood in the file then.
alter table agents add column timer_version integer, add column timer_in_file integer;
