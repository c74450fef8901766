-- alone
-- Lists the words of the clips that were there before the triggers of 0025-search, some at a time: each has many words, and a
-- change of its texts waits.
create table if not exists {{prefix}}clip_words_progress (after text collate "C" not null);

insert into {{prefix}}clip_words_progress select '' where not exists (select from {{prefix}}clip_words_progress);

-- repeat
-- The lock makes this read texts that a request is changing after their change, whose trigger has listed them.
with batch as (
  select id, token_id, source_id, title, tags, attribution, nsfw, created_at, deleted_at from {{prefix}}clips
  where id > (select after from {{prefix}}clip_words_progress) order by id limit 200 for share
), listed as (
  insert into {{prefix}}clip_search (clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words)
    select batch.id, batch.token_id, batch.created_at, source.bytes,
      coalesce(round((source.info ->> 'durationSeconds')::numeric * 1000), 0), batch.nsfw,
      left({{prefix}}search_key(coalesce(batch.title, '')), 60),
      array_to_tsvector({{prefix}}search_words(
        concat_ws(' ', batch.title, array_to_string(batch.tags, ' '), batch.attribution ->> 'user')))
    from batch join {{prefix}}sources source on source.id = batch.source_id where batch.deleted_at is null
    on conflict do nothing
    returning created_at, token_id, clip_id, words
), words as (
  insert into {{prefix}}clip_words (created_at, token_id, clip_id, word)
    select created_at, token_id, clip_id, unnest(tsvector_to_array(words)) from listed
)
update {{prefix}}clip_words_progress set after = (select max(id) from batch) where exists (select from batch);

drop table if exists {{prefix}}clip_words_progress;
