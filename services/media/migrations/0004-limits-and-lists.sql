-- Lists of clips, what tokens use, clips that expire, and keys of requests that are sent again.

-- Tags as they are compared. An older version that still runs writes none: its clips are not found by tag.
alter table {{prefix}}clips
  add column tag_keys text[] not null default '{}',
  add column delete_token_hash bytea check (octet_length(delete_token_hash) = 32),
  add column expires_at timestamptz;

update {{prefix}}clips set tag_keys = array(select lower(tag) from unnest(tags) tag) where tags <> '{}';

-- Newest first, of one token and of all.
create index {{prefix}}clips_list_idx on {{prefix}}clips (token_id, created_at desc, id desc) where deleted_at is null;
create index {{prefix}}clips_list_all_idx on {{prefix}}clips (created_at desc, id desc) where deleted_at is null;
create index {{prefix}}clips_tag_keys_idx on {{prefix}}clips using gin (tag_keys) where deleted_at is null;
create index {{prefix}}clips_expires_at_idx on {{prefix}}clips (expires_at) where expires_at is not null and deleted_at is null;
drop index {{prefix}}clips_token_id_idx;

-- What was made of a source, in bytes: the sum of its renditions.
alter table {{prefix}}sources add column rendition_bytes bigint not null default 0;

update {{prefix}}sources set rendition_bytes = made.bytes
  from (select source_id, sum(bytes) as bytes from {{prefix}}renditions group by source_id) made
  where made.source_id = id;

-- What a token has done on a day of UTC. Calls are added some seconds later; clips and their bytes with the clip.
create table {{prefix}}token_days (
  token_id uuid not null references {{prefix}}api_tokens (id),
  day date not null,
  requests bigint not null default 0,
  clips bigint not null default 0,
  bytes bigint not null default 0,
  primary key (token_id, day)
);

create index {{prefix}}token_days_day_idx on {{prefix}}token_days (day);

-- What a request with an Idempotency-Key came to: a clip, or a refusal.
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
