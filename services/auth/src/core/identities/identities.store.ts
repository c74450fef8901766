import { jsonb } from '@services/common/database/pool'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB, Metadata } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import { deleteAllFactors } from '../factors/factors.store.ts'
import { deleteRecoveryCodes } from '../factors/recovery-codes.store.ts'
import { deleteAllPasskeys } from '../passkeys/passkeys.store.ts'
import { endSessions } from '../sessions/end-sessions.store.ts'
import type { Address } from '../users/address.ts'
import { changeUser } from '../users/change-user.store.ts'

export interface NewIdentity {
  id: string
  userId: string
  provider: string
  /** Account id at the provider; for `email` and `phone` the user's own id. */
  providerId: string
  data: Metadata
  now: Date
}

function rowOf({ id, userId, provider, providerId, data, now }: NewIdentity) {
  const times = { created_at: now, updated_at: now }
  return { id, user_id: userId, provider, provider_id: providerId, identity_data: jsonb(data), ...times }
}

export async function insertIdentity(trx: Transaction<DB>, identity: NewIdentity): Promise<void> {
  await trx
    .insertInto('identities')
    .values({ ...rowOf(identity), last_sign_in_at: identity.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Serialises sign-ins of one account at a provider, so that two do not create two users. */
export async function lockExternalAccount(trx: Transaction<DB>, provider: string, sub: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockOf(provider, sub)})`.execute(trx)
}

/** The same without a wait, for a transaction that has locked a user: sign-ins lock the account first. */
export async function tryLockExternalAccount(trx: Transaction<DB>, provider: string, sub: string): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(${lockOf(provider, sub)}) as locked`.execute(trx)
  return rows[0]?.locked === true
}

const lockOf = (provider: string, sub: string) => sql`hashtextextended(${`${provider} ${sub}`}, 0)`

export function findIdentity(db: Kysely<DB>, provider: string, sub: string) {
  return db
    .selectFrom('identities')
    .select(['id', 'user_id'])
    .where('provider', '=', provider)
    .where('provider_id', '=', sub)
    .executeTakeFirst()
}

/** Stores the provider's current data and the time of the sign-in. */
export async function refreshIdentity(trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> {
  await trx
    .updateTable('identities')
    .set({ identity_data: jsonb(data), last_sign_in_at: now, updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** Marks the address as verified in the user's identities that contain it. */
export async function setIdentityVerified(
  trx: Transaction<DB>,
  userId: string,
  { channel, value }: Address,
  now: Date,
): Promise<void> {
  const verified = JSON.stringify({ [`${channel}_verified`]: true })
  await trx
    .updateTable('identities')
    .set({ identity_data: sql`identity_data || ${verified}::jsonb`, updated_at: now })
    .where('user_id', '=', userId)
    .where(channel === 'email' ? 'email' : sql`identity_data ->> 'phone'`, '=', value)
    .execute()
}

export interface AddressIdentity extends NewIdentity {
  provider: 'email' | 'phone'
}

/** Inserts the identity of a user's own address, or merges the data into it. True when it is new. */
export async function putAddressIdentity(trx: Transaction<DB>, identity: AddressIdentity): Promise<boolean> {
  const put = await trx
    .insertInto('identities')
    .values(rowOf({ ...identity, data: { email_verified: false, phone_verified: false, ...identity.data } }))
    .onConflict((conflict) =>
      conflict.columns(['provider', 'provider_id']).doUpdateSet({
        identity_data: sql`${sql.ref('identities.identity_data')} || ${JSON.stringify(identity.data)}::jsonb`,
        updated_at: identity.now,
      }),
    )
    // `xmax` is 0 in a row that was never updated.
    .returning(sql<boolean>`xmax = 0`.as('isNew'))
    .executeTakeFirst()
  return put?.isNew ?? false
}

export function putProvenIdentity(
  trx: Transaction<DB>,
  { address, ...identity }: Pick<AddressIdentity, 'id' | 'userId' | 'provider' | 'now'> & { address: string },
): Promise<boolean> {
  const { userId, provider } = identity
  const data = { sub: userId, [provider]: address, [`${provider}_verified`]: true }
  return putAddressIdentity(trx, { ...identity, providerId: userId, data })
}

export async function deleteIdentity(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('identities').where('id', '=', id).execute()
}

export async function deleteIdentitiesExcept(trx: Transaction<DB>, userId: string, provider: string): Promise<void> {
  await trx.deleteFrom('identities').where('user_id', '=', userId).where('provider', '!=', provider).execute()
}

/** Deletes identities at providers, except those that verified `exceptEmail`; false if there was none. */
export async function deleteProviderIdentities(
  trx: Transaction<DB>,
  userId: string,
  exceptEmail: string | null = null,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('identities')
    .where('user_id', '=', userId)
    .where('provider', 'not in', ['email', 'phone'])
    .where(sql<boolean>`(email = ${exceptEmail} and identity_data @> '{"email_verified": true}') is not true`)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

export function listIdentityKeys(trx: Transaction<DB>, userId: string) {
  return trx.selectFrom('identities').select(['id', 'provider', 'provider_id']).where('user_id', '=', userId).execute()
}

/**
 * Reports whether accounts of a provider's name come from other issuers alone. A provider that moved has some of both;
 * imported accounts may name none.
 */
export async function isNameOfOtherIssuer(db: Kysely<DB>, provider: string, issuer: string): Promise<boolean> {
  const { isOther } = await db
    .selectFrom('identities')
    .select(sql<boolean | null>`bool_and(identity_data ->> 'iss' <> ${issuer})`.as('isOther'))
    .where('provider', '=', provider)
    .executeTakeFirstOrThrow()
  return isOther === true
}

/** Removes personal data from an identity, and frees its account at the provider for another user. */
export async function anonymiseIdentity(trx: Transaction<DB>, id: string, providerId: string, now: Date) {
  await trx
    .updateTable('identities')
    .set({ provider_id: providerId, identity_data: jsonb({}), updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** Ends the sessions, passkeys and second factors of a registrant. Identities, password and data are the caller's. */
export async function endEntries(trx: Transaction<DB>, userId: string): Promise<void> {
  await noteChange(trx, { userId, sessionsEnd: 'account_taken_over' })
  await endSessions(trx, userId)
  await deleteAllPasskeys(trx, userId)
  await deleteAllFactors(trx, userId)
  await deleteRecoveryCodes(trx, userId)
}

/** Leaves an account the identity that proved it and this data, and its registrant no way in. */
export async function forgetRegistrant(
  trx: Transaction<DB>,
  userId: string,
  { identityId, data, now }: { identityId: string; data: Metadata; now: Date },
): Promise<void> {
  await trx.deleteFrom('identities').where('user_id', '=', userId).where('id', '!=', identityId).execute()
  await endEntries(trx, userId)
  await changeUser(trx, userId, { password_hash: null, claim: null, user_metadata: jsonb(data) }, now)
}
