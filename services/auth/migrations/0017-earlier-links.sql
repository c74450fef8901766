-- Links that a later request has replaced and that stay good, because that request's link serves only a browser with another
-- code verifier. They end with the row that replaced them, also where the version before deletes it.
create table {{prefix}}earlier_links (
  token_hash bytea primary key,
  user_id uuid not null,
  purpose text not null,
  relates_to text not null,
  code_challenge text,
  code_challenge_method text check (code_challenge_method in ('s256', 'plain')),
  sets_password boolean not null,
  expires_at timestamptz not null,
  foreign key (user_id, purpose) references {{prefix}}one_time_tokens (user_id, purpose) on delete cascade
);

create index {{prefix}}earlier_links_token_idx on {{prefix}}earlier_links (user_id, purpose);
