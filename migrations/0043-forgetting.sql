-- Rooms in which a memory was recalled that walls do not hold: a redaction looks for repetitions there as well. Not used
-- for walls. Rows outlive the memory until the redaction is done.
create table shareable_recalls (
  interaction_id bigint not null,
  room_id text not null,
  primary key (interaction_id, room_id)
);
insert into shareable_recalls
select distinct i.id, t.room_id from interactions i join turns t on t.agent = i.agent and (t.ended_at is null or t.ended_at >= i.at)
where i.shareable;

-- Memories of that kind which the redaction has removed.
alter table redactions add column memories bigint[] not null default '{}';
