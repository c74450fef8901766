-- Passkeys: keys that sign their user in without anything else.

create table {{prefix}}passkeys (
  id uuid primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  -- Id in base64url.
  credential_id text not null,
  -- COSE key (RFC 9052).
  public_key bytea not null,
  friendly_name text not null,
  -- Format of the attestation: none, or the key's own.
  attestation text not null,
  -- Model of the authenticator.
  aaguid uuid not null,
  -- Newest count of signatures; 0 where the authenticator counts none.
  sign_count bigint not null,
  transports text[] not null,
  backup_eligible boolean not null,
  backed_up boolean not null,
  -- The authenticator verified its user at the registration, by PIN or biometry.
  user_verified boolean not null,
  -- When its user was last warned that a copy may exist.
  warned_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null
);

create unique index {{prefix}}passkeys_credential_key on {{prefix}}passkeys (credential_id);
create index {{prefix}}passkeys_user_id_idx on {{prefix}}passkeys (user_id);

-- Challenges that were answered, rightly or not. Open ones are not stored; a row is deleted once time alone refuses its
-- id.
create table {{prefix}}used_passkey_challenges (
  id uuid primary key,
  expires_at timestamptz not null
);

create index {{prefix}}used_passkey_challenges_expires_at_idx on {{prefix}}used_passkey_challenges (expires_at);
