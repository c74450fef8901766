-- Uploads in pieces, and requests that are sent again.

-- Uploads in pieces. Their bytes are files of the same name in the work directory. A finished one stays for a while
-- without its file, so that a client whose connection broke at the last byte learns the result.
create table {{prefix}}resumable_uploads (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{32}$'),
  token_id uuid references {{prefix}}api_tokens (id),
  bytes bigint check (bytes >= 0), -- null until the client declares it
  metadata text not null, -- in the encoding of the protocol: keys, and values in base64
  clip_id text,
  -- Key by which a caller's uploads are counted: the token, or the address of a caller without one.
  owner_key text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create index {{prefix}}resumable_uploads_expires_at_idx on {{prefix}}resumable_uploads (expires_at);
create index {{prefix}}resumable_uploads_owner_idx on {{prefix}}resumable_uploads (owner_key) where clip_id is null;

-- Result of a request with an Idempotency-Key: a clip or a refusal.
create table {{prefix}}idempotency_keys (
  token_id uuid not null references {{prefix}}api_tokens (id),
  route text not null,
  key text collate "C" not null,
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  clip_id text,
  refusal jsonb,
  created_at timestamptz not null,
  primary key (token_id, route, key),
  check ((clip_id is null) <> (refusal is null))
);

create index {{prefix}}idempotency_keys_created_at_idx on {{prefix}}idempotency_keys (created_at);
