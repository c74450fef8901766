-- alone
-- For the filter of GET /admin/users. The pattern indexes serve the beginning of an address or full name, those of trigrams
-- every part of it. No sign-in writes the columns, so its update of the row stays HOT.
create index concurrently if not exists {{prefix}}users_email_pattern_idx
  on {{prefix}}users (email text_pattern_ops);

create index concurrently if not exists {{prefix}}users_full_name_pattern_idx
  on {{prefix}}users (lower(user_metadata ->> 'full_name') text_pattern_ops);

-- The role may lack the right to create it, and a server may not have it. Searches then find beginnings only.
do $$
begin
  create extension if not exists pg_trgm;
exception when others then
  raise notice 'pg_trgm is not available: %', sqlerrm;
end $$;

-- if exists (select from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid))
create index concurrently if not exists {{prefix}}users_email_trgm_idx
  on {{prefix}}users using gin (email gin_trgm_ops);

-- if exists (select from pg_opclass where opcname = 'gin_trgm_ops' and pg_opclass_is_visible(oid))
create index concurrently if not exists {{prefix}}users_full_name_trgm_idx
  on {{prefix}}users using gin (lower(user_metadata ->> 'full_name') gin_trgm_ops);

-- The planner has no statistics of an expression before.
analyze {{prefix}}users;
