-- Audit log.

create table {{prefix}}audit_log_entries (
  id uuid primary key,
  payload jsonb not null,
  ip_address text not null default '',
  created_at timestamptz not null
);

-- The query of GET /admin/audit: all entries, those of an action, of a user, and of an address or role, newest first.
-- It has no trigrams: among ten million entries they would cost a sign-in more than its entry does.
create index {{prefix}}audit_log_entries_created_at_idx on {{prefix}}audit_log_entries (created_at desc, id);
create index {{prefix}}audit_log_entries_action_idx
  on {{prefix}}audit_log_entries ((payload ->> 'action'), created_at desc, id);
create index {{prefix}}audit_log_entries_actor_id_idx
  on {{prefix}}audit_log_entries ((payload ->> 'actor_id'), created_at desc);
create index {{prefix}}audit_log_entries_actor_username_idx
  on {{prefix}}audit_log_entries ((payload ->> 'actor_username'), created_at desc);
-- Erasure of personal data finds the users that entries are about. Sign-ins and refreshes have none, so it costs them
-- nothing.
create index {{prefix}}audit_log_entries_target_id_idx
  on {{prefix}}audit_log_entries ((payload -> 'traits' ->> 'user_id'), created_at desc)
  where payload -> 'traits' ->> 'user_id' is not null;
