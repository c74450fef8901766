-- Providers of the admin API. They hold no personal data; deleting one leaves users and identities.
create table {{prefix}}custom_providers (
  id uuid primary key,
  -- Name in `provider`, in identities and in addresses of the API.
  identifier text not null check (identifier ~ '^custom:[a-z0-9:-]{0,42}[a-z0-9]$'),
  provider_type text not null check (provider_type in ('oauth2', 'oidc')),
  name text not null check (length(name) between 1 and 100),
  client_id text not null,
  -- Client secret, under AUTH_ENCRYPTION_KEYS; null for a public client.
  sealed_secret text,
  acceptable_client_ids jsonb not null,
  scopes jsonb not null,
  pkce_enabled boolean not null,
  attribute_mapping jsonb not null,
  custom_claims_allowlist jsonb not null,
  authorization_params jsonb not null,
  enabled boolean not null,
  -- Whether GET /settings shows it.
  listed boolean not null,
  email_optional boolean not null,
  linking text not null check (linking ~ '^(verified|never|group:[a-z0-9-]{1,32})$'),
  -- OpenID Connect
  issuer text,
  discovery_url text,
  skip_nonce_check boolean not null,
  discovery_document jsonb,
  discovered_at timestamptz,
  -- OAuth 2
  authorization_url text,
  token_url text,
  userinfo_url text,
  jwks_uri text,
  -- Counts changes: an earlier version in the memory of a process is obsolete.
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check (sealed_secret is not null or pkce_enabled)
);

create unique index {{prefix}}custom_providers_identifier_key on {{prefix}}custom_providers (identifier);
