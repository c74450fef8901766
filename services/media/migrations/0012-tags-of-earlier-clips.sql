-- alone
-- Lists the tags of the clips that were there before the triggers of migration 0011, a thousand clips at a time.
create table if not exists {{prefix}}clip_tags_progress (after text collate "C" not null);

insert into {{prefix}}clip_tags_progress select '' where not exists (select from {{prefix}}clip_tags_progress);

-- repeat
-- The lock makes this read tags that a request is changing after their change, whose trigger has listed them.
with batch as (
  select id, tag_keys, token_id, created_at, nsfw, deleted_at from {{prefix}}clips
  where id > (select after from {{prefix}}clip_tags_progress) order by id limit 1000 for share
), listed as (
  insert into {{prefix}}clip_tags (clip_id, tag_key, token_id, created_at, nsfw)
  select id, tag_key, token_id, created_at, nsfw from batch, unnest(tag_keys) tag_key where deleted_at is null
  on conflict do nothing
)
update {{prefix}}clip_tags_progress set after = (select max(id) from batch) where exists (select from batch);

drop table if exists {{prefix}}clip_tags_progress;
