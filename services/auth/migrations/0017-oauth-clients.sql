-- Applications that sign in with this service (RFC 7591). They hold no data of users.
create table {{prefix}}oauth_clients (
  id uuid primary key,
  client_type text not null check (client_type in ('public', 'confidential')),
  registration_type text not null check (registration_type in ('manual', 'dynamic', 'metadata_document')),
  -- SHA-256 of 32 random bytes in base64url; null without a secret.
  secret_hash bytea check (length(secret_hash) = 32),
  token_endpoint_auth_method text not null
    check (token_endpoint_auth_method in ('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt')),
  token_endpoint_auth_signing_alg text,
  jwks jsonb,
  jwks_uri text,
  redirect_uris jsonb not null,
  post_logout_redirect_uris jsonb not null,
  grant_types jsonb not null,
  -- Most that the client may ask for; null: the standard scopes.
  scope text,
  client_name text,
  client_uri text,
  logo_uri text,
  tos_uri text,
  policy_uri text,
  contacts jsonb not null,
  backchannel_logout_uri text,
  backchannel_logout_session_required boolean not null,
  frontchannel_logout_uri text,
  frontchannel_logout_session_required boolean not null,
  dpop_bound_access_tokens boolean not null,
  require_pushed_authorization_requests boolean not null,
  -- Role of the client's own tokens (client_credentials).
  role text not null,
  -- Resources whose tokens the client may introspect.
  introspects jsonb not null,
  -- Address of the metadata document, which is the client's id for others.
  metadata_uri text unique,
  -- The document is fetched again after the first time; without success the row serves until the second.
  metadata_fresh_until timestamptz,
  metadata_usable_until timestamptz,
  -- Written at most once a day; null: no tokens yet.
  last_used_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((client_type = 'public') = (token_endpoint_auth_method = 'none')),
  check ((registration_type = 'metadata_document') = (metadata_uri is not null)),
  check (num_nulls(metadata_uri, metadata_fresh_until, metadata_usable_until) in (0, 3))
);

create index {{prefix}}oauth_clients_created_at_idx on {{prefix}}oauth_clients (created_at desc, id);
-- Registrations without an administrator, which are counted and deleted unless used.
create index {{prefix}}oauth_clients_last_used_at_idx on {{prefix}}oauth_clients
  (registration_type, (coalesce(last_used_at, created_at))) where registration_type <> 'manual';

-- Scopes of the admin API, for other services.
create table {{prefix}}oauth_scopes (
  name text primary key check (name ~ '^[a-z0-9][a-z0-9:._-]{0,63}$'),
  description text not null,
  -- Descriptions by language.
  descriptions jsonb not null,
  -- Paths into the metadata of a user that become claims.
  claims jsonb not null,
  -- Whether a request that names no scope gets it.
  is_default boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
