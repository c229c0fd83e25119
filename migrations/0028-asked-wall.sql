-- Place behind whose wall an operation would carry what was shown, where people were told so when they were asked: a
-- room, a user ('@…'), or '' for an agent's home. An approval lifts this wall and no other.
alter table operations add column asked_wall text;
