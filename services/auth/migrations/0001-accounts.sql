-- Users, their identities, sessions, one-time tokens, the audit log and the tables that limits are kept in.
-- Times come from the service, never from now(), so that the service's clock is the only one.

create table {{prefix}}users (
  id uuid primary key,
  aud text not null,
  role text not null,
  email text check (email = lower(email) and octet_length(email) between 1 and 255),
  phone text check (phone ~ '^[1-9][0-9]{1,14}$' or deleted_at is not null),
  password_hash text,
  email_confirmed_at timestamptz,
  phone_confirmed_at timestamptz,
  confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
  invited_at timestamptz,
  confirmation_sent_at timestamptz,
  recovery_sent_at timestamptz,
  email_change text,
  email_change_sent_at timestamptz,
  email_change_confirm_status smallint not null default 0 check (email_change_confirm_status between 0 and 2),
  phone_change text,
  phone_change_sent_at timestamptz,
  reauthentication_sent_at timestamptz,
  last_sign_in_at timestamptz,
  app_metadata jsonb not null default '{}',
  user_metadata jsonb not null default '{}',
  is_anonymous boolean not null default false,
  banned_until timestamptz,
  deleted_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 90); -- room for the next version of a row beside it: every sign-in updates last_sign_in_at

create unique index {{prefix}}users_email_key on {{prefix}}users (email, aud);
create unique index {{prefix}}users_phone_key on {{prefix}}users (phone, aud);
create index {{prefix}}users_created_at_idx on {{prefix}}users (created_at desc, id);

create table {{prefix}}identities (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  provider text not null,
  provider_id text not null,
  identity_data jsonb not null,
  email text generated always as (lower(identity_data ->> 'email')) stored,
  last_sign_in_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index {{prefix}}identities_provider_key on {{prefix}}identities (provider, provider_id);
create index {{prefix}}identities_user_id_idx on {{prefix}}identities (user_id);
create index {{prefix}}identities_email_idx on {{prefix}}identities (email);

-- One row per sign-in. A refresh token is never stored: it names the session and `refresh_counter`, and carries an HMAC.
create table {{prefix}}sessions (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  aal text not null default 'aal1' check (aal in ('aal1', 'aal2', 'aal3')),
  amr jsonb not null,
  refresh_counter bigint not null default 0,
  refreshed_at timestamptz not null,
  not_after timestamptz,
  user_agent text,
  ip inet,
  created_at timestamptz not null
) with (fillfactor = 80); -- every refresh updates the row in place; no indexed column changes, so the update is HOT

create index {{prefix}}sessions_user_id_idx on {{prefix}}sessions (user_id);
-- For housekeeping; both columns are written once, so that refreshes stay HOT.
create index {{prefix}}sessions_created_at_idx on {{prefix}}sessions (created_at);
create index {{prefix}}sessions_not_after_idx on {{prefix}}sessions (not_after) where not_after is not null;

-- At most one live token per user and purpose; a new one replaces the old.
create table {{prefix}}one_time_tokens (
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  purpose text not null check (purpose in (
    'confirmation', 'recovery', 'email_change_new', 'email_change_current', 'phone_confirmation', 'phone_change',
    'reauthentication'
  )),
  relates_to text not null,
  token_hash bytea,
  code_hash bytea,
  attempts smallint not null default 0,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (user_id, purpose)
);

create unique index {{prefix}}one_time_tokens_token_hash_key on {{prefix}}one_time_tokens (token_hash);
create index {{prefix}}one_time_tokens_expires_at_idx on {{prefix}}one_time_tokens (expires_at);

create table {{prefix}}audit_log_entries (
  id uuid primary key,
  payload jsonb not null,
  ip_address text not null default '',
  created_at timestamptz not null
);

create index {{prefix}}audit_log_entries_created_at_idx on {{prefix}}audit_log_entries (created_at desc, id);

-- When the last message of a kind went to an address, known to us or not; the key is a hash of both.
create table {{prefix}}send_gaps (
  key bytea primary key,
  sent_at timestamptz not null,
  expires_at timestamptz not null
);

create index {{prefix}}send_gaps_expires_at_idx on {{prefix}}send_gaps (expires_at);

-- Counters of rate-limiter-flexible; the shape is the library's. Losing them in a crash is harmless, so no WAL.
create unlogged table {{prefix}}rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);

create index {{prefix}}rate_limits_expire_idx on {{prefix}}rate_limits (expire);
