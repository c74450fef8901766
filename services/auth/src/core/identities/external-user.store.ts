import { jsonb } from '@services/common/database'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB, Metadata } from '../../db/tables.ts'
import { endEntries } from './end-entries.ts'

/** Makes sign-ins of one account at a provider wait for each other, so that two at once do not make two users. */
export async function lockExternalAccount(trx: Transaction<DB>, provider: string, sub: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${provider} ${sub}`}, 0))`.execute(trx)
}

export function findIdentity(db: Kysely<DB>, provider: string, sub: string) {
  return db
    .selectFrom('identities')
    .select(['id', 'user_id'])
    .where('provider', '=', provider)
    .where('provider_id', '=', sub)
    .executeTakeFirst()
}

/** What the provider tells now, and that its account was just used. */
export async function refreshIdentity(trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> {
  await trx
    .updateTable('identities')
    .set({ identity_data: jsonb(data), last_sign_in_at: now, updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** Leaves an account the identity it was just proven by and this data, and no way in to who made it. */
export async function forgetUnprovenOwner(
  trx: Transaction<DB>,
  userId: string,
  { identityId, data, now }: { identityId: string; data: Metadata; now: Date },
): Promise<void> {
  await trx.deleteFrom('identities').where('user_id', '=', userId).where('id', '!=', identityId).execute()
  await endEntries(trx, userId)
  await trx
    .updateTable('users')
    .set({ password_hash: null, claim: null, user_metadata: jsonb(data), updated_at: now })
    .where('id', '=', userId)
    .execute()
}
