-- Models by which memory is embedded: the present one, and those whose vectors are still there.
create table embedding_models (
  model text primary key,
  dimensions integer not null,
  is_present boolean not null,
  -- Interactions below this id have not been looked at yet, whether they have a vector of the model.
  below bigint not null,
  chosen_at timestamptz not null default now()
);
create unique index embedding_models_present on embedding_models (is_present) where is_present;

-- Vectors of a text that has changed are those of another text. A trigger sees those, too, that were stored while the
-- statement that changes it was under way.
create function forget_vectors() returns trigger language plpgsql as $$
begin
  delete from interaction_vectors where interaction_id = new.id;
  return null;
end
$$;
create trigger interactions_changed after update of text on interactions
  for each row when (old.text is distinct from new.text) execute function forget_vectors();
