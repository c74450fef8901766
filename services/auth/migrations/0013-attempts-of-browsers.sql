-- Whether the browser that began an attempt has a cookie for it, without which the provider's answer is refused. False in
-- attempts of before, and of replicas that still run the version before: they end within minutes.
alter table {{prefix}}flow_states
  add column browser_bound boolean not null default false;
