import { type Kysely, sql } from 'kysely'
import { userJson } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'

/** Passkeys of the user as lines have them; null without any. Public keys are no secret. */
const passkeys = sql<object[] | null>`(
  select jsonb_agg(jsonb_build_object(
    'credential_id', credential_id, 'friendly_name', friendly_name, 'attestation', attestation, 'aaguid', aaguid,
    'public_key', translate(encode(public_key, 'base64'), E'+/=\\n', '-_'),
    'sign_count', sign_count, 'transports', transports, 'backup_eligible', backup_eligible, 'backed_up', backed_up,
    'user_verified', user_verified, 'last_used_at', last_used_at, 'created_at', created_at) order by created_at, id)
  from ${sql.table('passkeys')} where user_id = ${sql.ref('users.id')})`

export const findUsersAfter = (db: Kysely<DB>, id: string, limit: number) =>
  db
    .selectFrom('users')
    .select(['users.password_hash', userJson, passkeys.as('passkeys')])
    .where('users.id', '>', id)
    .where('users.deleted_at', 'is', null)
    .orderBy('users.id')
    .limit(limit)
    .execute()
