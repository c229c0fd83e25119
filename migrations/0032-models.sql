-- A model for each kind of task: what was `submodel` in agent.json is `models.read.name`. The other fields stay as they
-- are written, in their order.
update files set text_content = coalesce((
  select E'{\n  ' || string_agg(
    case when key = 'submodel' then '"models": ' || json_build_object('read', json_build_object('name', value))
      else to_json(key) || ': ' || value end, E',\n  ' order by place) || E'\n}'
  from json_each(text_content::json) with ordinality as field(key, value, place)
  where key <> 'submodel' or value::text <> 'null'
), '{}')
where share = 'agents' and path ~ '^/[^/]+/agent[.]json$' and text_content is json object and text_content like '%"submodel"%';

-- Share of each message in the tokens of its prompt, in the order of the prompt: see Share in domain/tables/budgets.ts.
alter table usage add column shares jsonb;
