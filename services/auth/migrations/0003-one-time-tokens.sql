-- Links and codes that prove an address.

-- Live tokens, at most one per user and purpose; a new one replaces the old.
create table {{prefix}}one_time_tokens (
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  purpose text not null check (purpose in (
    'confirmation', 'recovery', 'email_change_new', 'email_change_current', 'phone_confirmation', 'phone_change',
    'reauthentication'
  )),
  relates_to text not null,
  token_hash bytea,
  code_hash bytea,
  -- Random part of the code; the rest is the server's key. A message that is repeated has the code of the first one.
  code_seed bytea,
  attempts smallint not null default 0,
  -- Codes of this user and purpose that died of wrong attempts since the last one that was used.
  used_up_codes smallint not null default 0,
  -- The link of a challenge redirects with a code instead of a session (RFC 7636).
  code_challenge text,
  code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  -- Sent for a claim (users.claim), which the proof applies.
  sets_password boolean not null default false,
  -- Sealed account at a provider that reported the address; the proof in the browser of its sign-in links it.
  external_account text,
  -- Session that requested the token, which is worth nothing once that session has ended; null without one.
  session_id uuid,
  -- End of the link.
  expires_at timestamptz not null,
  -- End of the code, which a repeated message does not move.
  code_expires_at timestamptz,
  created_at timestamptz not null,
  primary key (user_id, purpose),
  check ((code_hash is null) = (code_expires_at is null))
);

create unique index {{prefix}}one_time_tokens_token_hash_key on {{prefix}}one_time_tokens (token_hash);
create index {{prefix}}one_time_tokens_relates_to_idx on {{prefix}}one_time_tokens (relates_to);
create index {{prefix}}one_time_tokens_expires_at_idx on {{prefix}}one_time_tokens (expires_at);

-- Replaced links that stay valid, because the newer link serves only a browser with another code verifier. They end
-- with the row that replaced them.
create table {{prefix}}earlier_links (
  token_hash bytea primary key,
  user_id uuid not null,
  purpose text not null,
  relates_to text not null,
  code_challenge text,
  code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  sets_password boolean not null,
  external_account text,
  session_id uuid,
  expires_at timestamptz not null,
  foreign key (user_id, purpose) references {{prefix}}one_time_tokens (user_id, purpose) on delete cascade
);

create index {{prefix}}earlier_links_token_idx on {{prefix}}earlier_links (user_id, purpose);
