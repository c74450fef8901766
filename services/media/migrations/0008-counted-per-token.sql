-- What is counted for each token.

-- Whose a source is: of who brought its bytes first. Null: of a caller without a token. It stays when the clip is deleted,
-- because the work does. An older version that still runs leaves it out: its clips count as nobody's for as long as they wait.
alter table {{prefix}}sources add column token_id uuid references {{prefix}}api_tokens (id);

update {{prefix}}sources set token_id = first.token_id
  from (select distinct on (source_id) source_id, token_id from {{prefix}}clips order by source_id, created_at) first
  where first.source_id = id and state = 'processing';
