-- Sessions, and what precedes one: attempts at external providers, and codes that an application exchanges for a
-- session.

-- One row per sign-in. A refresh token is never stored: it names the session and `refresh_counter`, and carries an
-- HMAC. Every refresh updates the row. No index contains a column that a refresh changes, so that the update is HOT.
create table {{prefix}}sessions (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  aal text not null default 'aal1' check (aal in ('aal1', 'aal2', 'aal3')),
  -- Level at which the session began, without a trusted device. It falls to this one with its factor.
  initial_aal text not null default 'aal1' check (initial_aal in ('aal1', 'aal2')),
  amr jsonb not null,
  -- Factor that raised the session to aal2.
  factor_id uuid,
  -- Trusted device that the session began with: it replaces the second factor, until one is proven.
  trusted_device_id uuid,
  -- Identity at a provider or passkey that started the session, null for other sign-ins. The session ends with it.
  identity_id uuid,
  refresh_counter bigint not null default 0,
  refreshed_at timestamptz not null,
  -- Late uses of the token before the newest one, by the client that got the newest.
  repeats integer not null default 0,
  not_after timestamptz,
  -- Client of the sign-in, then of the refresh that made the newest token.
  user_agent text,
  ip inet,
  created_at timestamptz not null
) with (fillfactor = 80);

create index {{prefix}}sessions_user_id_idx on {{prefix}}sessions (user_id);
-- Housekeeping reads these.
create index {{prefix}}sessions_created_at_idx on {{prefix}}sessions (created_at);
create index {{prefix}}sessions_not_after_idx on {{prefix}}sessions (not_after) where not_after is not null;

-- An attempt at a provider, from GET /authorize until the provider's answer. It is used once. The row stays until it
-- expires, so that a second use differs from a made-up attempt.
create table {{prefix}}flow_states (
  id uuid primary key,
  provider text not null,
  redirect_to text not null,
  aud text not null,
  code_challenge text,
  code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  invite_token_hash bytea,
  -- User and session that requested to link an account. The session must still exist when the provider answers.
  linking_user_id uuid,
  linking_session_id uuid,
  -- Secrets of the attempt, under AUTH_ENCRYPTION_KEY; once a test of an admin has ended, its result.
  sealed text not null,
  is_test boolean not null default false,
  used_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}flow_states_expires_at_idx on {{prefix}}flow_states (expires_at);

-- Issued when a PKCE link is followed or a provider has answered, taken by POST /token?grant_type=pkce.
create table {{prefix}}auth_codes (
  code_hash bytea primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  code_challenge text not null,
  code_challenge_method text not null check (code_challenge_method in ('s256', 'plain')),
  authentication_method text not null,
  -- Tokens that the provider issued, under AUTH_ENCRYPTION_KEY.
  provider_tokens text,
  -- Session that requested the change or the link which gave the code, null for a sign-in. The code ends with it.
  session_id uuid,
  -- The exchange gives the tokens of session_id, which a hosted page began, and starts none.
  hands_over boolean not null default false,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}auth_codes_user_id_idx on {{prefix}}auth_codes (user_id);
create index {{prefix}}auth_codes_expires_at_idx on {{prefix}}auth_codes (expires_at);

-- Messages that wallets signed, and their nonces, each usable once. The key is a hash; the row is deleted once time
-- alone refuses the message.
create table {{prefix}}used_web3_messages (
  key bytea primary key,
  expires_at timestamptz not null
);

create index {{prefix}}used_web3_messages_expires_at_idx on {{prefix}}used_web3_messages (expires_at);
