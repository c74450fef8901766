-- The identity at a provider that a session began with: it ends when that identity is unlinked. Null in sessions that began
-- otherwise, and in those of before.
alter table {{prefix}}sessions add column identity_id uuid;

-- Name of a user's set of recovery codes, the same in all of its rows; null: the usual one.
alter table {{prefix}}recovery_codes add column friendly_name text;

-- Sets of before are shown among the factors, as new ones are.
update {{prefix}}users
set factors = coalesce(factors, '[]') || jsonb_build_array(jsonb_build_object(
  'id', codes.set_id, 'factor_type', 'recovery_code', 'status', 'verified', 'friendly_name', 'Recovery codes',
  'phone', null, 'aaguid', null, 'last_challenged_at', null,
  'created_at', codes.created_at, 'updated_at', codes.created_at))
from (select user_id, set_id, min(created_at) as created_at from {{prefix}}recovery_codes group by user_id, set_id) codes
where codes.user_id = {{prefix}}users.id;
