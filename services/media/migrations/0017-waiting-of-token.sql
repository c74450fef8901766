-- alone
-- An upload counts the clips that wait, all and its token's, from this index alone.
create index concurrently if not exists {{prefix}}sources_waiting_idx
  on {{prefix}}sources (token_id) where state = 'processing';

-- It served the count alone. The version before counts along the new one.
drop index concurrently if exists {{prefix}}sources_processing_idx;
