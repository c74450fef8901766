-- Receivers of events, and the deliveries to them: an outbox and its log.

create table {{prefix}}webhooks (
  id uuid primary key,
  token_id uuid not null references {{prefix}}api_tokens (id),
  url text not null,
  events text[] not null
    check (events <@ array['media.ready', 'media.failed', 'media.deleted', 'media.reported', 'media.hidden',
      'media.unhidden']),
  secret text not null, -- sealed where the service has a key for it
  created_at timestamptz not null,
  failures integer not null default 0, -- since the last success
  failing_since timestamptz,
  paused_until timestamptz,
  disabled_at timestamptz
);

create index {{prefix}}webhooks_token_id_idx on {{prefix}}webhooks (token_id);

create table {{prefix}}webhook_deliveries (
  id uuid primary key,
  webhook_id uuid not null references {{prefix}}webhooks (id) on delete cascade,
  type text not null,
  payload jsonb not null,
  state text not null check (state in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  attempts_before integer not null default 0, -- those before it was sent again by hand
  next_attempt_at timestamptz check ((next_attempt_at is not null) = (state = 'pending')),
  give_up_at timestamptz not null,
  last_attempt_at timestamptz,
  last_status integer,
  last_error text,
  created_at timestamptz not null
);

create index {{prefix}}webhook_deliveries_list_idx
  on {{prefix}}webhook_deliveries (webhook_id, created_at desc, id desc);
create index {{prefix}}webhook_deliveries_pending_idx
  on {{prefix}}webhook_deliveries (next_attempt_at) where state = 'pending';
-- Deliveries that wait for a slot of their receiver, in its order.
create index {{prefix}}webhook_deliveries_due_idx on {{prefix}}webhook_deliveries (webhook_id, created_at, id)
  where state = 'pending';
create index {{prefix}}webhook_deliveries_created_at_idx on {{prefix}}webhook_deliveries (created_at);
