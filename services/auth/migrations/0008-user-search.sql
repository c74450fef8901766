-- alone
-- Trigram indexes for the filter of GET /admin/users, which find every part of an address, number or full name. No
-- sign-in writes the columns, so its update stays HOT. With `fastupdate`, a request would now and then sort what
-- thousands before it had left.

-- The role may lack the right to create the extension, or the server the extension. Then searches find beginnings only,
-- until an operator runs these statements: they may run on a large table in use.
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
create index concurrently if not exists {{prefix}}users_phone_trgm_idx
  on {{prefix}}users using gin (phone gin_trgm_ops) with (fastupdate = off);

-- if exists (select from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid))
create index concurrently if not exists {{prefix}}users_full_name_trgm_idx
  on {{prefix}}users using gin (lower(user_metadata ->> 'full_name') gin_trgm_ops) with (fastupdate = off);

-- if to_regclass('{{prefix}}users_full_name_trgm_idx') is not null
alter index {{prefix}}users_full_name_trgm_idx alter column 1 set statistics 1000;

analyze {{prefix}}users;
