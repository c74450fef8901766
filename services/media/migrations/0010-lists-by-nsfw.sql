-- alone
-- Lists by nsfw are decided in the index too: a list of few of very many clips would read the rest of them from the table.
create index concurrently if not exists {{prefix}}clips_of_token_idx
  on {{prefix}}clips (token_id, created_at desc, id desc, nsfw) where deleted_at is null;

create index concurrently if not exists {{prefix}}clips_newest_idx
  on {{prefix}}clips (created_at desc, id desc, nsfw) where deleted_at is null;

-- These served the same lists without nsfw; those of the version before are served by the new ones.
drop index concurrently if exists {{prefix}}clips_list_idx;

drop index concurrently if exists {{prefix}}clips_list_all_idx;
