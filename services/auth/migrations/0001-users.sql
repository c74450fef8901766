-- Users, their identities, and what requests claim for addresses that are not proven yet.
-- Here and in all files: times come from the service, never from now(), so that the service's clock is the only one.

-- Every sign-in updates `last_sign_in_at`. No index contains it, and the fillfactor leaves space in the page, so that
-- the update is HOT.
create table {{prefix}}users (
  id uuid primary key,
  aud text not null,
  role text not null,
  email text check (email = lower(email) and octet_length(email) between 1 and 255),
  phone text check (phone ~ '^[1-9][0-9]{1,14}$' or deleted_at is not null),
  password_hash text,
  email_confirmed_at timestamptz,
  phone_confirmed_at timestamptz,
  confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
  -- The address counts as confirmed because of a setting (MAILER_AUTOCONFIRM, SMS_AUTOCONFIRM), without a proof. The
  -- first proof takes the account from its registrant.
  email_assumed boolean not null default false,
  phone_assumed boolean not null default false,
  -- An admin gave the account this address and so vouches for it: no proof displaces the account, no claim changes it.
  email_vouched boolean not null default false,
  phone_vouched boolean not null default false,
  -- Password and metadata that the account gets with the proof of its address, in place of those it was registered
  -- with.
  claim jsonb,
  invited_at timestamptz,
  confirmation_sent_at timestamptz,
  recovery_sent_at timestamptz,
  email_change text,
  email_change_sent_at timestamptz,
  -- Session that requested the change, which is not shown once that session has ended; null without one.
  email_change_session_id uuid,
  email_change_confirm_status smallint not null default 0 check (email_change_confirm_status between 0 and 2),
  phone_change text,
  phone_change_sent_at timestamptz,
  phone_change_session_id uuid,
  reauthentication_sent_at timestamptz,
  last_sign_in_at timestamptz,
  app_metadata jsonb not null default '{}',
  user_metadata jsonb not null default '{}',
  -- Public part of the user's factors, null without any. Written with each change of them, so that reading a user needs
  -- no second table.
  factors jsonb,
  is_anonymous boolean not null default false,
  banned_until timestamptz,
  deleted_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 90);

create unique index {{prefix}}users_email_key on {{prefix}}users (email, aud);
create unique index {{prefix}}users_phone_key on {{prefix}}users (phone, aud);

-- GET /admin/users lists one audience by time of creation: ids and count of a page come from this index alone.
create index {{prefix}}users_aud_created_at_idx on {{prefix}}users (aud, created_at, id);

-- Housekeeping walks anonymous users by age. Neither column changes while a user is anonymous, so sign-ins stay HOT.
create index {{prefix}}users_anonymous_idx on {{prefix}}users (created_at, id) where is_anonymous;

-- The filter of GET /admin/users: beginnings of an address, number or full name. Other parts need trigrams
-- (user-search.sql).
create index {{prefix}}users_email_pattern_idx on {{prefix}}users (email text_pattern_ops);
create index {{prefix}}users_phone_pattern_idx on {{prefix}}users (phone text_pattern_ops);
create index {{prefix}}users_full_name_pattern_idx
  on {{prefix}}users (lower(user_metadata ->> 'full_name') text_pattern_ops);

-- The share of matches decides between walking the list and collecting the matches. The default of a hundred sampled
-- values estimates that share to a percent only.
alter table {{prefix}}users alter column email set statistics 1000;
alter index {{prefix}}users_full_name_pattern_idx alter column 1 set statistics 1000;

create table {{prefix}}identities (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  provider text not null,
  provider_id text not null,
  identity_data jsonb not null,
  email text generated always as (lower(identity_data ->> 'email')) stored,
  last_sign_in_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index {{prefix}}identities_provider_key on {{prefix}}identities (provider, provider_id);
create index {{prefix}}identities_user_id_idx on {{prefix}}identities (user_id);
create index {{prefix}}identities_email_idx on {{prefix}}identities (email);
-- Imported addresses of Ethereum differ in capitals.
create index {{prefix}}identities_web3_idx on {{prefix}}identities (lower(provider_id)) where provider = 'web3';

-- One row per requested address, with or without an account; `key` is an HMAC of the address. The tags show whether the
-- next request asks for the same password and metadata: they count only while all requests agree. A row is valid as
-- long as a link could be followed.
create table {{prefix}}address_claims (
  key bytea primary key,
  password_tag bytea not null,
  data_tag bytea not null,
  password_differs boolean not null default false,
  data_differs boolean not null default false,
  expires_at timestamptz not null
);

create index {{prefix}}address_claims_expires_at_idx on {{prefix}}address_claims (expires_at);
