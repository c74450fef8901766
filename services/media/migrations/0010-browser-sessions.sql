-- Sessions of browsers at the pages for owners. Each stands for a token and ends with it; the cookie's value is stored
-- as a hash alone.

create table {{prefix}}browser_sessions (
  hash bytea primary key check (octet_length(hash) = 32),
  token_id uuid not null references {{prefix}}api_tokens (id) on delete cascade,
  -- Browser and system as its owner knows them, such as "Firefox, Linux".
  client_name text,
  created_at timestamptz not null,
  -- Precise to a day.
  last_used_at timestamptz not null,
  expires_at timestamptz not null
);

create index {{prefix}}browser_sessions_token_idx on {{prefix}}browser_sessions (token_id, last_used_at desc);
create index {{prefix}}browser_sessions_expires_at_idx on {{prefix}}browser_sessions (expires_at);
