-- Tokens, clips, the sources they were made from, the files, and the counters of limits.
-- Times come from the service, never from now(), so that the service's clock is the only one.

create table {{prefix}}api_tokens (
  id uuid primary key,
  name text not null,
  prefix text not null, -- for display: the first characters, which open nothing
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

-- What a file was measured to be and what was made of it: one row per content and pipeline, however often it came.
create table {{prefix}}sources (
  id uuid primary key,
  sha256 bytea not null check (octet_length(sha256) = 32),
  pipeline_version integer not null,
  state text not null check (state in ('processing', 'ready', 'failed')),
  error_code text check ((error_code is not null) = (state = 'failed')),
  error_details jsonb,
  progress real not null default 0 check (progress between 0 and 1),
  bytes bigint not null,
  info jsonb not null,
  has_audio boolean not null,
  clip_count integer not null check (clip_count >= 0),
  unreferenced_at timestamptz check (unreferenced_at is null or clip_count = 0),
  created_at timestamptz not null,
  finished_at timestamptz
);

-- A failed source does not stand in the way of another try with the same bytes.
create unique index {{prefix}}sources_sha256_key on {{prefix}}sources (sha256, pipeline_version) where state <> 'failed';
create index {{prefix}}sources_processing_idx on {{prefix}}sources (created_at) where state = 'processing';
create index {{prefix}}sources_unreferenced_at_idx on {{prefix}}sources (unreferenced_at) where unreferenced_at is not null;

-- One upload or import. A deleted clip stays as a tombstone without what its owner wrote, so that it is 410 and not 404.
create table {{prefix}}clips (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{8}$'),
  token_id uuid references {{prefix}}api_tokens (id),
  source_id uuid references {{prefix}}sources (id),
  title text,
  tags text[] not null default '{}',
  nsfw boolean not null default false,
  attribution jsonb,
  source_kind text not null check (source_kind in ('upload', 'import')),
  source_url text,
  created_at timestamptz not null,
  deleted_at timestamptz,
  check ((source_id is null) = (deleted_at is not null))
);

create index {{prefix}}clips_source_id_idx on {{prefix}}clips (source_id);
create index {{prefix}}clips_token_id_idx on {{prefix}}clips (token_id, created_at desc);

-- The files in the blob store. A row is there before its file and until after it, so that no file is unknown.
create table {{prefix}}blobs (
  sha256 bytea not null check (octet_length(sha256) = 32),
  extension text not null,
  bytes bigint not null,
  reference_count integer not null default 0 check (reference_count >= 0),
  unreferenced_at timestamptz check ((unreferenced_at is not null) = (reference_count = 0)),
  primary key (sha256, extension)
);

create index {{prefix}}blobs_unreferenced_at_idx on {{prefix}}blobs (unreferenced_at) where unreferenced_at is not null;

create table {{prefix}}renditions (
  source_id uuid not null references {{prefix}}sources (id),
  kind text not null check (kind in ('gif', 'jpg', 'mp4', 'webm')),
  sha256 bytea not null,
  bytes bigint not null,
  width integer not null,
  height integer not null,
  primary key (source_id, kind),
  foreign key (sha256, kind) references {{prefix}}blobs (sha256, extension)
);

create index {{prefix}}renditions_blob_idx on {{prefix}}renditions (sha256, kind);

-- Counters of rate-limiter-flexible; the shape is the library's. Losing them in a crash is harmless, so no WAL.
create unlogged table {{prefix}}rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);

create index {{prefix}}rate_limits_expire_idx on {{prefix}}rate_limits (expire);
