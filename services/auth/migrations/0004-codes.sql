-- What a link or code does beside confirming, and the codes a PKCE link is exchanged through.

-- A PKCE link redirects with a code instead of a session (RFC 7636). A password given with the request that sent the link
-- is set when the link is used: whoever registers a stranger's address first must not choose its password.
alter table {{prefix}}one_time_tokens
  add column code_challenge text,
  add column code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  add column sets_password boolean not null default false,
  add column new_password_hash text;

create index {{prefix}}one_time_tokens_relates_to_idx on {{prefix}}one_time_tokens (relates_to);

-- Made when a PKCE link is followed, taken when the application exchanges it at POST /token?grant_type=pkce.
create table {{prefix}}auth_codes (
  code_hash bytea primary key,
  user_id uuid not null references {{prefix}}users (id) on delete cascade,
  code_challenge text not null,
  code_challenge_method text not null check (code_challenge_method in ('s256', 'plain')),
  authentication_method text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null
);

create index {{prefix}}auth_codes_user_id_idx on {{prefix}}auth_codes (user_id);
create index {{prefix}}auth_codes_expires_at_idx on {{prefix}}auth_codes (expires_at);
