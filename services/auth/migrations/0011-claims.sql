-- What requests ask for an address that is not proven: a password and metadata. They count only while all requests agree.

-- One row per address that was named in a request, known to us or not: `key` is a hash of it. `password_tag` and `data_tag`
-- tell whether the next request asks for the same. A row counts until it expires: as long as a link could be followed.
create table {{prefix}}address_claims (
  key bytea primary key,
  password_tag bytea not null,
  data_tag bytea not null,
  password_differs boolean not null default false,
  data_differs boolean not null default false,
  expires_at timestamptz not null
);

create index {{prefix}}address_claims_expires_at_idx on {{prefix}}address_claims (expires_at);

-- What the account gets with the proof of its address, in place of what it was registered with.
alter table {{prefix}}users add column claim jsonb;

-- Passwords that waited with a token until now. `new_password_hash` is not read any more; a later migration drops it.
update {{prefix}}users u
set claim = jsonb_build_object('password_hash', t.password_hash, 'data',
  u.user_metadata - '{sub,email,phone,email_verified,phone_verified}'::text[])
from (
  select user_id, case when bool_and(new_password_hash is not null) then min(new_password_hash) end as password_hash
  from {{prefix}}one_time_tokens where sets_password group by user_id
) t
where t.user_id = u.id and u.email_confirmed_at is null and u.phone_confirmed_at is null
  and u.invited_at is null and not u.made_by_admin;

-- An invitation took the password away with its token; from now on it does so at once.
update {{prefix}}users u
set password_hash = null
from {{prefix}}one_time_tokens t
where t.user_id = u.id and t.sets_password and t.new_password_hash is null and t.purpose = 'confirmation'
  and u.invited_at is not null and u.email_confirmed_at is null and u.phone_confirmed_at is null;
