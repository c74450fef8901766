-- alone
-- For the filter of GET /admin/users. The pattern indexes serve the beginning of an address or full name, those of trigrams
-- every part of it. No sign-in writes the columns, so its update of the row stays HOT. `fastupdate = off`: else a request would
-- now and then have to sort in what thousands before it had left.
create index concurrently if not exists {{prefix}}users_email_pattern_idx
  on {{prefix}}users (email text_pattern_ops);

create index concurrently if not exists {{prefix}}users_full_name_pattern_idx
  on {{prefix}}users (lower(user_metadata ->> 'full_name') text_pattern_ops);

-- The role may lack the right to create it, and a server may not have it. Searches then find beginnings only.
do $$
begin
  create extension if not exists pg_trgm;
exception when insufficient_privilege or feature_not_supported or undefined_file or unique_violation or duplicate_object then
  raise notice 'pg_trgm is not available: %', sqlerrm;
end $$;

-- if exists (select from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid))
create index concurrently if not exists {{prefix}}users_email_trgm_idx
  on {{prefix}}users using gin (email gin_trgm_ops) with (fastupdate = off);

-- if exists (select from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid))
create index concurrently if not exists {{prefix}}users_full_name_trgm_idx
  on {{prefix}}users using gin (lower(user_metadata ->> 'full_name') gin_trgm_ops) with (fastupdate = off);

-- Whether to walk the list or to collect the matches depends on their share, which a hundred sampled values give to a percent.
alter table {{prefix}}users alter column email set statistics 1000;

alter index {{prefix}}users_full_name_pattern_idx alter column 1 set statistics 1000;

-- if to_regclass('{{prefix}}users_full_name_trgm_idx') is not null
alter index {{prefix}}users_full_name_trgm_idx alter column 1 set statistics 1000;

analyze {{prefix}}users;
