-- Limits, and rows against measuring: both count requests alike, with and without an account.

-- When the last message of a kind was requested for an address, with or without an account; the key is a hash of both.
create table {{prefix}}send_gaps (
  key bytea primary key,
  sent_at timestamptz not null,
  expires_at timestamptz not null
);

create index {{prefix}}send_gaps_expires_at_idx on {{prefix}}send_gaps (expires_at);

-- Counters of rate-limiter-flexible, which defines the columns. Losing them in a crash is harmless, so they need no
-- WAL.
create unlogged table {{prefix}}rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);

create index {{prefix}}rate_limits_expire_idx on {{prefix}}rate_limits (expire);

-- Decoys: rows written where an account's would be, so that timing does not reveal an unknown address.
create table {{prefix}}decoy_rows (
  key bytea primary key,
  written_at timestamptz not null
);

create index {{prefix}}decoy_rows_written_at_idx on {{prefix}}decoy_rows (written_at);
