-- API tokens, and what they use.
-- Times come from the service, never from now(), so that the service's clock is the only one.

create table {{prefix}}api_tokens (
  id uuid primary key,
  name text not null,
  prefix text not null, -- the first characters, for lists of tokens; they open nothing
  hash bytea not null check (octet_length(hash) = 32),
  scopes text[] not null check (scopes <@ array['write', 'read', 'delete', 'admin']),
  limits jsonb not null default '{}',
  is_bootstrap boolean not null default false,
  created_at timestamptz not null,
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);

create unique index {{prefix}}api_tokens_hash_key on {{prefix}}api_tokens (hash);

-- Use of a token on a UTC day. Calls are added some seconds later, clips and their bytes with the clip.
create table {{prefix}}token_days (
  token_id uuid not null references {{prefix}}api_tokens (id),
  day date not null,
  requests bigint not null default 0,
  clips bigint not null default 0,
  bytes bigint not null default 0,
  primary key (token_id, day)
);

create index {{prefix}}token_days_day_idx on {{prefix}}token_days (day);

-- Counters of rate-limiter-flexible; the shape is the library's. Losing them in a crash is harmless, so no WAL.
create unlogged table {{prefix}}rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);

create index {{prefix}}rate_limits_expire_idx on {{prefix}}rate_limits (expire);
