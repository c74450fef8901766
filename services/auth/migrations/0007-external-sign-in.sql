-- Signing in at external providers.

-- An attempt, from GET /authorize until the provider's answer. It is used once; the row stays until it expires, so that a
-- second use can be told from a made-up one. `sealed`: the secrets of the attempt, under AUTH_ENCRYPTION_KEY.
create table {{prefix}}flow_states (
  id uuid primary key,
  provider text not null,
  redirect_to text not null,
  aud text not null,
  code_challenge text,
  code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  invite_token_hash bytea,
  linking_user_id uuid,
  sealed text not null,
  used_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}flow_states_expires_at_idx on {{prefix}}flow_states (expires_at);

-- What the provider gave out, sealed like the above, while it waits for the application to exchange the code.
alter table {{prefix}}auth_codes
  add column provider_tokens text;
