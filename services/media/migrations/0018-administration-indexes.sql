-- alone
-- Lists of administrators: acts by token, kind and subject; deliveries that failed; tokens and webhooks by their age.

create index concurrently if not exists {{prefix}}audit_entries_token_idx
  on {{prefix}}audit_entries (token_id, created_at desc, id desc);

create index concurrently if not exists {{prefix}}audit_entries_action_idx
  on {{prefix}}audit_entries (action, created_at desc, id desc);

create index concurrently if not exists {{prefix}}audit_entries_target_idx
  on {{prefix}}audit_entries (target, created_at desc, id desc);

create index concurrently if not exists {{prefix}}webhook_deliveries_failed_idx
  on {{prefix}}webhook_deliveries (created_at desc, id desc) where state = 'failed';

create index concurrently if not exists {{prefix}}api_tokens_created_idx
  on {{prefix}}api_tokens (created_at desc, id desc);

create index concurrently if not exists {{prefix}}webhooks_created_idx
  on {{prefix}}webhooks (created_at desc, id desc);
