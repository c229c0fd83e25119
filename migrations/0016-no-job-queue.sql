-- The tables of the job queue pg-boss, which turns do without now: claims of living processes took its place. They are
-- left alone where somebody else has queues there, or owns them.
do $$
declare
  foreign_queues bigint;
begin
  if to_regclass('pgboss.queue') is null then return; end if;
  if not pg_has_role((select nspowner from pg_namespace where nspname = 'pgboss'), 'usage') then return; end if;
  execute $query$select count(*) from pgboss.queue where name <> 'turn' and name not like '\_\_pgboss\_\_%'$query$
    into foreign_queues;
  if foreign_queues = 0 then execute 'drop schema pgboss cascade'; end if;
end
$$;
