-- Usage that belongs to no step (a question to a submodel, a call that broke off) has a key in place of turn and step.
alter table usage drop constraint usage_pkey;
alter table usage alter turn_id drop not null, alter n drop not null;
alter table usage add key text unique, add requesters text[] not null default '{}', add unique (turn_id, n);
create index usage_age on usage (created_at);

-- Limits for a day (UTC) that were set by command; they stand before those of the configuration. Key '*': for each of
-- the scope that has none of its own. Null: no limit.
create table budgets (
  scope text not null check (scope in ('bridge', 'agent', 'room', 'requester')),
  key text not null,
  tokens bigint,
  usd double precision,
  set_by text not null,
  set_at timestamptz not null default now(),
  primary key (scope, key)
);

-- Amounts spent on a day, and reserved for calls that run.
create table spending (
  day date not null,
  scope text not null,
  key text not null,
  tokens bigint not null,
  usd double precision not null,
  primary key (day, scope, key)
);

-- One for each model call that runs: what it may cost is in `spending` already.
create table reservations (
  key text primary key,
  turn_id bigint,
  day date not null,
  accounts jsonb not null,
  tokens bigint not null,
  usd double precision not null,
  created_at timestamptz not null default now()
);

-- Amount that a reservation holds of an account.
create function held_for(held reservations, account spending, out tokens bigint, out usd double precision)
language sql immutable as $$
  select case when held.accounts @> part then held.tokens else 0 end, case when held.accounts @> part then held.usd else 0 end
  from jsonb_build_array(jsonb_build_object('scope', account.scope, 'key', account.key)) part
$$;

-- Reserves for a call, or anew under the same key, from all of its accounts ({scope, key, tokens, usd}: the limits) or
-- from none. Returns the account that does not allow it, with the day; null if all do. Accounts are locked in one
-- order, and judged by what those who held them before have left.
create function reserve_budget(call text, turn bigint, accounts jsonb, want_tokens bigint, want_usd double precision)
returns jsonb language plpgsql as $$
declare
  today date := (now() at time zone 'utc')::date;
  held reservations;
  refused jsonb;
begin
  select * into held from reservations r where r.key = call and r.day = today;
  insert into spending (day, scope, key, tokens, usd)
  select today, a.scope, a.key, coalesce(u.tokens, 0), coalesce(u.usd, 0)
  from jsonb_to_recordset(accounts) as a(scope text, key text)
  cross join lateral (
    select sum(prompt_tokens + completion_tokens) as tokens, sum(cost_usd) as usd from usage
    where created_at >= today::timestamp at time zone 'utc' and case a.scope
      when 'bridge' then true when 'agent' then agent = a.key when 'room' then room_id = a.key else a.key = any (requesters) end
  ) u
  where not exists (select 1 from spending s where s.day = today and s.scope = a.scope and s.key = a.key)
  order by a.scope, a.key
  on conflict do nothing;
  perform 1 from spending s join jsonb_to_recordset(accounts) as a(scope text, key text) using (scope, key)
  where s.day = today order by s.scope, s.key for update of s;
  select jsonb_build_object('scope', s.scope, 'key', s.key, 'day', today) into refused
  from spending s join jsonb_to_recordset(accounts) as a(scope text, key text, tokens bigint, usd double precision) using (scope, key)
  where s.day = today and (
    s.tokens - (held_for(held, s)).tokens + want_tokens > a.tokens or s.usd - (held_for(held, s)).usd + want_usd > a.usd)
  order by s.scope desc, s.key limit 1;
  if refused is not null then return refused; end if;
  update spending s
  set tokens = s.tokens - (held_for(held, s)).tokens + want_tokens, usd = s.usd - (held_for(held, s)).usd + want_usd
  from jsonb_to_recordset(accounts) as a(scope text, key text)
  where s.day = today and s.scope = a.scope and s.key = a.key;
  insert into reservations (key, turn_id, day, accounts, tokens, usd)
  values (call, turn, today, accounts, want_tokens, want_usd)
  on conflict (key) do update set day = excluded.day, accounts = excluded.accounts, tokens = excluded.tokens,
    usd = excluded.usd, created_at = now();
  return null;
end
$$;
