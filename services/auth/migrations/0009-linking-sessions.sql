-- The session in which somebody asked for an account at a provider: it must still be there when the provider answers. Null in
-- attempts of before, which end.
alter table {{prefix}}flow_states
  add column linking_session_id uuid;
