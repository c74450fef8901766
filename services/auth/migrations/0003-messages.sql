-- Mail and SMS on their way out, and what became of them. The queue's job names only the row. Addresses, links and codes
-- are inside `sealed` (AES-256-GCM) and are gone once the message has left.

create table {{prefix}}messages (
  id uuid primary key,
  user_id uuid references {{prefix}}users (id) on delete cascade,
  channel text not null check (channel in ('mail', 'sms')),
  kind text not null,
  state text not null default 'queued' check (state in ('queued', 'sent', 'failed', 'dropped')),
  attempts integer not null default 0,
  last_error text,
  sealed text,
  lifetime_seconds integer,
  provider text,
  provider_message_id text,
  created_at timestamptz not null,
  sent_at timestamptz,
  updated_at timestamptz not null
);

-- For the list of GET /admin/messages: all, of a state, of a user. The second serves housekeeping too.
create index {{prefix}}messages_created_at_idx on {{prefix}}messages (created_at desc, id);
create index {{prefix}}messages_state_idx on {{prefix}}messages (state, created_at desc, id);
create index {{prefix}}messages_user_id_idx on {{prefix}}messages (user_id, created_at desc);
