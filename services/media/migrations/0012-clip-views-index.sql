-- alone
-- Lists in the order of their views, of one token and of all.

create index concurrently if not exists {{prefix}}clip_search_views_idx on {{prefix}}clip_search (views, clip_id);

create index concurrently if not exists {{prefix}}clip_search_views_of_token_idx
  on {{prefix}}clip_search (token_id, views, clip_id);

alter table {{prefix}}idempotency_keys validate constraint outcome_check;
