-- Tags of the clips that are not deleted, in the order of lists: a page of a tag is one walk along an index, however rare the tag,
-- old its clips, or few of them the token's. An index of arrays (clips_tag_keys_idx) finds clips by tag, but in no order; the
-- version before uses it.
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

-- Kept by triggers, so that the version before keeps it too.
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
    (old.tag_keys, old.token_id, old.nsfw, old.deleted_at) is distinct from (new.tag_keys, new.token_id, new.nsfw, new.deleted_at))
  execute function {{prefix}}list_clip_tags();
