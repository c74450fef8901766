-- Outbox: mail and SMS on their way out, and what became of them. A job of the queue names only the row.

create table {{prefix}}messages (
  id uuid primary key,
  user_id uuid references {{prefix}}users (id) on delete cascade,
  channel text not null check (channel in ('mail', 'sms')),
  kind text not null,
  state text not null default 'queued' check (state in ('queued', 'sent', 'failed', 'dropped')),
  attempts integer not null default 0,
  last_error text,
  -- Address, link and code, under AES-256-GCM; deleted when the message has left.
  sealed text,
  lifetime_seconds integer,
  provider text,
  provider_message_id text,
  created_at timestamptz not null,
  sent_at timestamptz,
  updated_at timestamptz not null
);

-- The list of GET /admin/messages: all, of a state, of a channel, of a kind, of a user. The index on the state serves
-- housekeeping too.
create index {{prefix}}messages_created_at_idx on {{prefix}}messages (created_at desc, id);
create index {{prefix}}messages_state_idx on {{prefix}}messages (state, created_at desc, id);
create index {{prefix}}messages_channel_idx on {{prefix}}messages (channel, created_at desc, id);
create index {{prefix}}messages_kind_idx on {{prefix}}messages (kind, created_at desc, id);
create index {{prefix}}messages_user_id_idx on {{prefix}}messages (user_id, created_at desc);
