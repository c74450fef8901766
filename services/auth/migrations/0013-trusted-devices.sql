-- Trusted devices: each replaces its user's second factor at a sign-in, until it expires or ends.

create table {{prefix}}trusted_devices (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  name text,
  -- Hash of the current token's secret. Each use replaces the token.
  token_hash bytea not null,
  uses integer not null default 0,
  -- Proven factors of the user when the device was trusted, and the one that was proven for it.
  factor_ids uuid[] not null,
  factor_id uuid not null,
  -- Session that trusted it.
  session_id uuid not null,
  -- Client of the newest use.
  user_agent text,
  ip inet,
  last_used_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}trusted_devices_user_id_idx on {{prefix}}trusted_devices (user_id);
create index {{prefix}}trusted_devices_expires_at_idx on {{prefix}}trusted_devices (expires_at);
