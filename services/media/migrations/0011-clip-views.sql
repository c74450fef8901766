-- Views of clips by day. No row holds anything of a visitor.

create table {{prefix}}clip_views (
  clip_id text collate "C" not null references {{prefix}}clips (id) on delete cascade,
  -- UTC day.
  day date not null,
  page bigint not null default 0,
  embed bigint not null default 0,
  file bigint not null default 0,
  primary key (clip_id, day)
);

create index {{prefix}}clip_views_day_idx on {{prefix}}clip_views (day);

-- Sums over all days, those that were deleted too.
create table {{prefix}}clip_view_sums (
  clip_id text collate "C" primary key references {{prefix}}clips (id) on delete cascade,
  page bigint not null default 0,
  embed bigint not null default 0,
  file bigint not null default 0
);

-- Sort key of lists; index: 0012.
alter table {{prefix}}clip_search add column views bigint not null default 0;

-- The function of 0005, with the views.
create or replace function {{prefix}}list_clip_words() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    with unlisted as (delete from {{prefix}}clip_search where clip_id = old.id returning created_at, words)
    delete from {{prefix}}clip_words listed using unlisted, unnest(tsvector_to_array(words)) old_word
      where listed.word = old_word and listed.created_at = unlisted.created_at and listed.clip_id = old.id;
    if tg_op = 'DELETE' then return null; end if;
  end if;
  with listed as (
    insert into {{prefix}}clip_search (clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words, views)
      select new.id, new.token_id, new.created_at, source.bytes,
        coalesce(round((source.info ->> 'durationSeconds')::numeric * 1000), 0), new.nsfw,
        left({{prefix}}search_key(coalesce(new.title, '')), 60),
        array_to_tsvector({{prefix}}search_words(
          concat_ws(' ', new.title, array_to_string(new.tags, ' '), new.attribution ->> 'user'))),
        coalesce((select page + embed + file from {{prefix}}clip_view_sums where clip_id = new.id), 0)
      from {{prefix}}sources source where source.id = new.source_id and new.deleted_at is null
      returning created_at, token_id, clip_id, words
  )
  insert into {{prefix}}clip_words (created_at, token_id, clip_id, word)
    select created_at, token_id, clip_id, unnest(tsvector_to_array(words)) from listed;
  return null;
end $$;

-- Outcomes of requests that add no clip.
alter table {{prefix}}idempotency_keys add column answer jsonb;
alter table {{prefix}}idempotency_keys drop constraint {{prefix}}idempotency_keys_check;
alter table {{prefix}}idempotency_keys add constraint outcome_check
  check (num_nonnulls(clip_id, refusal, answer) = 1) not valid;
