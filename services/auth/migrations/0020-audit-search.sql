-- alone
-- For the query of GET /admin/audit: entries of an action, of a user and of an address or role, newest first. Trigrams of ten
-- million entries would cost every sign-in more than its entry does.
create index concurrently if not exists {{prefix}}audit_log_entries_action_idx
  on {{prefix}}audit_log_entries ((payload ->> 'action'), created_at desc, id);

create index concurrently if not exists {{prefix}}audit_log_entries_actor_id_idx
  on {{prefix}}audit_log_entries ((payload ->> 'actor_id'), created_at desc);

create index concurrently if not exists {{prefix}}audit_log_entries_actor_username_idx
  on {{prefix}}audit_log_entries ((payload ->> 'actor_username'), created_at desc);

analyze {{prefix}}audit_log_entries;
