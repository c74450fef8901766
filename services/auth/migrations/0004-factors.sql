-- Second factors: a user proves one beside the first sign-in, which raises the session to aal2.

create table {{prefix}}factors (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  factor_type text not null check (factor_type in ('totp', 'phone', 'webauthn')),
  status text not null default 'unverified' check (status in ('unverified', 'verified')),
  -- '' without a name; two factors without one clash too.
  friendly_name text not null,
  -- Session that enrolled it, which its first proof needs.
  session_id uuid not null,
  phone text check (phone ~ '^[1-9][0-9]{1,14}$'),
  -- TOTP secret, under AUTH_ENCRYPTION_KEY.
  sealed_secret text,
  -- 30-second step of the newest accepted code. This code and older ones are spent.
  last_used_step bigint,
  credential_id text,
  -- Public half of a security key, with its counter.
  credential jsonb,
  last_challenged_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index {{prefix}}factors_name_key on {{prefix}}factors (user_id, friendly_name);
create unique index {{prefix}}factors_phone_key on {{prefix}}factors (user_id, phone);
create unique index {{prefix}}factors_credential_key on {{prefix}}factors (credential_id);
create index {{prefix}}factors_unverified_idx on {{prefix}}factors (created_at) where status = 'unverified';

create table {{prefix}}factor_challenges (
  id uuid primary key,
  factor_id uuid not null references {{prefix}}factors (id) on delete cascade,
  -- Session that opened it, which an answer needs.
  session_id uuid not null,
  ip inet,
  -- Hash of the code sent to a phone.
  code_hash bytea,
  attempts smallint not null default 0,
  -- Challenge for a security key, and the origins that may answer it.
  webauthn jsonb,
  verified_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}factor_challenges_factor_id_idx on {{prefix}}factor_challenges (factor_id);
create index {{prefix}}factor_challenges_expires_at_idx on {{prefix}}factor_challenges (expires_at);

-- Recovery codes, at most one set per user. A used code stays, so that the size of the set is known.
create table {{prefix}}recovery_codes (
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  code_hash bytea not null,
  set_id uuid not null,
  -- Name of the set, the same in all of its rows; null for the default name.
  friendly_name text,
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (user_id, code_hash)
);
