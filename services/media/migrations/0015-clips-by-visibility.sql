-- alone
-- A token's clips of one visibility, newest first. They may be few of very many, which no statistics say. The condition
-- means that a clip is not deleted, in other words than those of the other indexes. A list with these words is read
-- along this index alone.

create index concurrently if not exists {{prefix}}clips_visibility_of_token_idx
  on {{prefix}}clips (token_id, visibility, created_at desc, id desc, nsfw) where source_id is not null;
