-- All that somebody has said: where a question names a person, the memory looks there besides.
create index interactions_of_sender on interactions (sender, id) where agent is null;
