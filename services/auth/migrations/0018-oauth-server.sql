-- Requests of applications and devices, and consents. A session of an application is a row of `sessions`.

-- Their rule and index come alone, as they read the table: 0019-application-sessions.sql.
alter table {{prefix}}sessions
  -- Application of the session; null: the account's own.
  add column oauth_client_id uuid,
  -- Granted scopes and resources (RFC 8707), lists.
  add column scopes jsonb,
  add column resources jsonb,
  -- Thumbprint of the key that its tokens are bound to (RFC 9449).
  add column dpop_thumbprint text,
  -- Session of the browser that approved the request; null: the account's own, and sessions of devices.
  add column approved_by uuid;

create table {{prefix}}oauth_authorizations (
  -- 32 random letters and digits; part of the request_uri of a pushed request.
  id text primary key,
  client_id uuid not null references {{prefix}}oauth_clients on delete cascade,
  redirect_uri text not null,
  response_mode text not null check (response_mode in ('query', 'form_post')),
  scopes jsonb not null,
  resources jsonb not null,
  state text,
  nonce text,
  code_challenge text not null,
  dpop_thumbprint text,
  prompt text,
  max_age integer,
  login_hint text,
  acr_values text,
  -- pushed: not begun by a browser yet.
  status text not null check (status in ('pushed', 'pending', 'approved', 'denied')),
  -- First user who saw it.
  user_id uuid references {{prefix}}users on delete cascade,
  -- Session that approved; its end ends the code.
  session_id uuid references {{prefix}}sessions on delete cascade,
  -- Newest proof and level of that session.
  authenticated_at timestamptz,
  aal text,
  -- SHA-256 of the code.
  code_hash bytea unique check (length(code_hash) = 32),
  -- `error` of a denied request.
  refusal text,
  -- End of the code; of a denied request: end of its page.
  code_expires_at timestamptz,
  -- First view of the page that posts the answer (form_post).
  posted_at timestamptz,
  -- Session that the code gave: a second use ends it.
  given_session_id uuid,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}oauth_authorizations_client_id_idx on {{prefix}}oauth_authorizations (client_id);
create index {{prefix}}oauth_authorizations_user_id_idx on {{prefix}}oauth_authorizations (user_id);
create index {{prefix}}oauth_authorizations_session_id_idx on {{prefix}}oauth_authorizations (session_id);
create index {{prefix}}oauth_authorizations_expires_at_idx on {{prefix}}oauth_authorizations (expires_at);

create table {{prefix}}oauth_consents (
  user_id uuid not null references {{prefix}}users on delete cascade,
  client_id uuid not null references {{prefix}}oauth_clients on delete cascade,
  scopes jsonb not null,
  resources jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (user_id, client_id)
);

create index {{prefix}}oauth_consents_client_id_idx on {{prefix}}oauth_consents (client_id);

-- Devices that wait for their user (RFC 8628).
create table {{prefix}}oauth_device_codes (
  id uuid primary key,
  -- SHA-256 of the device code.
  device_code_hash bytea not null unique check (length(device_code_hash) = 32),
  user_code text not null unique,
  client_id uuid not null references {{prefix}}oauth_clients on delete cascade,
  scopes jsonb not null,
  resources jsonb not null,
  status text not null check (status in ('pending', 'approved', 'denied')),
  user_id uuid references {{prefix}}users on delete cascade,
  session_id uuid references {{prefix}}sessions on delete cascade,
  authenticated_at timestamptz,
  aal text,
  -- Session that the code gave: a second use ends it.
  given_session_id uuid,
  -- Client that asked for the code.
  user_agent text,
  ip inet,
  interval_seconds integer not null,
  polled_at timestamptz,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}oauth_device_codes_client_id_idx on {{prefix}}oauth_device_codes (client_id);
create index {{prefix}}oauth_device_codes_user_id_idx on {{prefix}}oauth_device_codes (user_id);
create index {{prefix}}oauth_device_codes_session_id_idx on {{prefix}}oauth_device_codes (session_id);
create index {{prefix}}oauth_device_codes_expires_at_idx on {{prefix}}oauth_device_codes (expires_at);

-- Assertions of clients and proofs of possession that were used once (RFC 7523, RFC 9449); keys are hashes.
create table {{prefix}}used_oauth_proofs (
  key bytea primary key,
  expires_at timestamptz not null
);

create index {{prefix}}used_oauth_proofs_expires_at_idx on {{prefix}}used_oauth_proofs (expires_at);

-- Ended sessions that their application has to hear of (OpenID Connect Back-Channel Logout). A trigger writes them:
-- sessions end in many ways, also with their user.
create table {{prefix}}oauth_logout_notices (
  session_id uuid primary key,
  user_id uuid not null,
  -- Client, also one that is deleted meanwhile; its id for others, and its address at that time.
  client_id uuid not null,
  audience text not null,
  address text not null,
  attempts integer not null default 0,
  next_at timestamptz not null default '-infinity',
  created_at timestamptz not null default now()
);

create index {{prefix}}oauth_logout_notices_client_id_idx on {{prefix}}oauth_logout_notices (client_id, next_at);
create index {{prefix}}oauth_logout_notices_created_at_idx on {{prefix}}oauth_logout_notices (created_at);

create function {{prefix}}note_oauth_logout() returns trigger language plpgsql as $$
begin
  insert into {{prefix}}oauth_logout_notices (session_id, user_id, client_id, audience, address)
  select old.id, old.user_id, client.id, coalesce(client.metadata_uri, client.id::text), client.backchannel_logout_uri
  from {{prefix}}oauth_clients client
  where client.id = old.oauth_client_id and client.backchannel_logout_uri is not null;
  return null;
end
$$;

create trigger {{prefix}}sessions_oauth_logout after delete on {{prefix}}sessions
  for each row when (old.oauth_client_id is not null) execute function {{prefix}}note_oauth_logout();
