-- Second factors: what a user proves beside the first sign-in, and what raises a session to aal2.

-- `friendly_name` is '' where none was given; two of those clash too. `sealed_secret`: the TOTP secret, under
-- AUTH_ENCRYPTION_KEY. `last_used_step`: the 30-second step of the newest code that was accepted; older ones and itself are
-- spent. `credential`: the public half of a security key, with its counter.
create table {{prefix}}factors (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  factor_type text not null check (factor_type in ('totp', 'phone', 'webauthn')),
  status text not null default 'unverified' check (status in ('unverified', 'verified')),
  friendly_name text not null,
  phone text check (phone ~ '^[1-9][0-9]{1,14}$'),
  sealed_secret text,
  last_used_step bigint,
  credential_id text,
  credential jsonb,
  last_challenged_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index {{prefix}}factors_name_key on {{prefix}}factors (user_id, friendly_name);
create unique index {{prefix}}factors_phone_key on {{prefix}}factors (user_id, phone);
create unique index {{prefix}}factors_credential_key on {{prefix}}factors (credential_id);
create index {{prefix}}factors_unverified_idx on {{prefix}}factors (created_at) where status = 'unverified';

-- `code_hash`: of the code sent to a phone. `webauthn`: what a security key was asked, and for whom.
create table {{prefix}}factor_challenges (
  id uuid primary key,
  factor_id uuid not null references {{prefix}}factors (id) on delete cascade,
  ip inet,
  code_hash bytea,
  attempts smallint not null default 0,
  webauthn jsonb,
  verified_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}factor_challenges_factor_id_idx on {{prefix}}factor_challenges (factor_id);
create index {{prefix}}factor_challenges_expires_at_idx on {{prefix}}factor_challenges (expires_at);

-- At most one set of codes per user; a used one stays, so that it is known how many there were.
create table {{prefix}}recovery_codes (
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  code_hash bytea not null,
  set_id uuid not null,
  used_at timestamptz,
  created_at timestamptz not null,
  primary key (user_id, code_hash)
);

-- What every answer shows of a user's factors, null when there are none: written with each change to them, so that reading a
-- user costs nothing more than before.
alter table {{prefix}}users add column factors jsonb;

-- The factor a session was raised with.
alter table {{prefix}}sessions add column factor_id uuid;
