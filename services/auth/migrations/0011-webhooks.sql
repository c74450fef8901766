-- Receivers of events, and the events on their way to them: an outbox and its log.

create table {{prefix}}webhooks (
  id uuid primary key,
  url text not null,
  -- Names of events; `user.*` stands for all that begin so, `*` for all.
  events text[] not null,
  description text not null,
  -- Secrets that sign, under AUTH_ENCRYPTION_KEY.
  sealed_secrets text not null,
  -- Events for a disabled receiver wait, unless it answered 410 (`gone`).
  enabled boolean not null default true,
  -- Why the service disabled it; null where an admin did.
  disabled_reason text check (disabled_reason in ('gone', 'failing')),
  failures integer not null default 0, -- since the last success
  failing_since timestamptz,
  paused_until timestamptz,
  unset_at timestamptz, -- AUTH_WEBHOOK_URL no longer names it since then
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- A user as the events of one transaction show it: once for all of them, of which there may be thousands.
create table {{prefix}}event_users (
  id uuid primary key,
  user_id uuid not null,
  data jsonb not null,
  created_at timestamptz not null
);

-- Erasure.
create index {{prefix}}event_users_user_id_idx on {{prefix}}event_users (user_id);
-- Housekeeping.
create index {{prefix}}event_users_created_at_idx on {{prefix}}event_users (created_at);

-- An event for one receiver. No foreign keys: their locks on the receiver's row would be taken by every sign-in. Rows
-- of a deleted receiver are deleted with it and by housekeeping.
create table {{prefix}}webhook_deliveries (
  webhook_id uuid not null,
  -- Id of the event, the same for all receivers.
  id uuid not null,
  -- Order of the events of a user: each is inserted with the user's row locked.
  position bigint generated always as identity,
  user_id uuid,
  event text not null,
  data jsonb not null,
  -- The user is deleted, and `data` has no personal data any more.
  is_erased boolean not null default false,
  -- The `user` of the event, where `data` has none. Its row has the same created_at.
  event_user_id uuid,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  attempts integer not null default 0,
  attempts_before integer not null default 0, -- those before it was sent again by hand
  is_running boolean not null default false,
  -- Due, or the end of a running attempt's lease.
  next_at timestamptz check ((next_at is not null) = (state = 'waiting')),
  give_up_at timestamptz not null,
  last_status integer,
  last_error text,
  created_at timestamptz not null,
  primary key (webhook_id, id)
);

-- The next deliveries of a receiver, and whether an earlier one of the same user waits.
create index {{prefix}}webhook_deliveries_waiting_idx
  on {{prefix}}webhook_deliveries (webhook_id, next_at, position) where state = 'waiting';
create index {{prefix}}webhook_deliveries_user_order_idx
  on {{prefix}}webhook_deliveries (webhook_id, user_id, position) where state = 'waiting';
-- Erasure.
create index {{prefix}}webhook_deliveries_user_id_idx on {{prefix}}webhook_deliveries (user_id) where not is_erased;
-- Housekeeping and replay.
create index {{prefix}}webhook_deliveries_created_at_idx on {{prefix}}webhook_deliveries (created_at);
