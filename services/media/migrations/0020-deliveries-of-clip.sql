-- alone
-- Deliveries about one clip, newest first.

create index concurrently if not exists {{prefix}}webhook_deliveries_clip_idx
  on {{prefix}}webhook_deliveries ((payload -> 'data' ->> 'id'), created_at desc, id desc);
