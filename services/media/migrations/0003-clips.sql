-- Clips, and the lists of their tags.

-- One upload or import. A deleted clip stays as a tombstone without its owner's texts, and so answers 410 instead of
-- 404.
create table {{prefix}}clips (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{8}$'),
  token_id uuid references {{prefix}}api_tokens (id),
  source_id uuid references {{prefix}}sources (id),
  title text,
  tags text[] not null default '{}',
  -- Tags as they are compared.
  tag_keys text[] not null default '{}',
  nsfw boolean not null default false,
  -- True where `nsfw` is a decision, which the owner cannot undo.
  nsfw_forced boolean not null default false,
  attribution jsonb,
  source_kind text not null check (source_kind in ('upload', 'import')),
  source_url text,
  delete_token_hash bytea check (octet_length(delete_token_hash) = 32),
  visibility text not null default 'public'
    constraint {{prefix}}clips_visibility_known check (visibility in ('public', 'unlisted', 'private')),
  -- Random key of timed links to a private clip; null until the first one. Replacing it ends all links.
  link_salt bytea,
  expires_at timestamptz,
  -- Seconds by which a visit extends the lifetime; null where visits do not.
  sliding_seconds integer,
  hidden_at timestamptz,
  hidden_reason text,
  created_at timestamptz not null,
  deleted_at timestamptz,
  -- Hash of the file that a deleted clip had, by which its bytes can still be blocked.
  deleted_sha256 bytea,
  check ((source_id is null) = (deleted_at is not null))
);

create index {{prefix}}clips_source_id_idx on {{prefix}}clips (source_id);
-- Lists, newest first, of one token and of all. They decide `nsfw` in the index too: a list of few of very many clips
-- would read the rest of them from the table.
create index {{prefix}}clips_of_token_idx
  on {{prefix}}clips (token_id, created_at desc, id desc, nsfw) where deleted_at is null;
create index {{prefix}}clips_newest_idx on {{prefix}}clips (created_at desc, id desc, nsfw) where deleted_at is null;
-- Housekeeping deletes expired clips and old tombstones.
create index {{prefix}}clips_expires_at_idx
  on {{prefix}}clips (expires_at) where expires_at is not null and deleted_at is null;
create index {{prefix}}clips_deleted_at_idx on {{prefix}}clips (deleted_at) where deleted_at is not null;

-- A row for each tag of the clips that are not deleted, in the order of lists. A page of a tag is one walk along an
-- index, however rare the tag, old its clips, or few of them the token's.
create table {{prefix}}clip_tags (
  clip_id text collate "C" not null references {{prefix}}clips (id) on delete cascade,
  tag_key text not null,
  token_id uuid,
  created_at timestamptz not null,
  nsfw boolean not null,
  primary key (clip_id, tag_key)
);

create index {{prefix}}clip_tags_newest_idx on {{prefix}}clip_tags (tag_key, created_at desc, clip_id desc, nsfw);
create index {{prefix}}clip_tags_of_token_idx
  on {{prefix}}clip_tags (token_id, tag_key, created_at desc, clip_id desc, nsfw);

-- Triggers keep it, so that no statement that changes a clip can forget it.
create function {{prefix}}list_clip_tags() returns trigger language plpgsql as $$
begin
  delete from {{prefix}}clip_tags where clip_id = new.id;
  insert into {{prefix}}clip_tags (clip_id, tag_key, token_id, created_at, nsfw)
    select distinct new.id, tag_key, new.token_id, new.created_at, new.nsfw from unnest(new.tag_keys) tag_key
    where new.deleted_at is null;
  return null;
end $$;

create trigger {{prefix}}clip_tagged after insert on {{prefix}}clips
  for each row when (new.tag_keys <> '{}') execute function {{prefix}}list_clip_tags();
create trigger {{prefix}}clip_tags_changed after update of tag_keys, token_id, nsfw, deleted_at on {{prefix}}clips
  for each row when ((old.tag_keys <> '{}' or new.tag_keys <> '{}') and
    (old.tag_keys, old.token_id, old.nsfw, old.deleted_at) is distinct from
    (new.tag_keys, new.token_id, new.nsfw, new.deleted_at))
  execute function {{prefix}}list_clip_tags();
