import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { expressionBuilder, type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { insertDecoy } from '../../db/decoy-rows.store.ts'
import type { Claim, DB, Metadata } from '../../db/tables.ts'
import { isStillGood } from '../one-time-tokens/earlier-links.store.ts'
import type { Address } from './address.ts'
import { FACTS } from './proven-addresses.ts'
import { hasProvider } from './registrants.store.ts'

export interface AddressClaim {
  address: Address
  /** HMAC of only the address, as for send gaps: requests for another audience are compared too. */
  key: Buffer
  /** null: a request without a password, for a link or code. */
  passwordHash: string | null
  passwordTag: Buffer
  data: Metadata
  now: Date
  expiresAt: Date
}

/** Stores a claim, locks its row until the transaction ends, and returns differences from earlier, unexpired ones. */
export async function putAddressClaim(
  trx: Transaction<DB>,
  { key, passwordTag, data, now, expiresAt }: AddressClaim,
  compared: 'with earlier' | 'alone',
) {
  const isCompared = compared === 'alone' ? sql`false` : sql`claims.expires_at > ${now}`
  const { rows } = await sql<{ password_differs: boolean; data_differs: boolean }>`
    insert into ${sql.table('address_claims')} as claims (key, password_tag, data_tag, expires_at)
    values (${key}, ${passwordTag}, sha256(convert_to(${JSON.stringify(data)}::jsonb::text, 'UTF8')), ${expiresAt})
    on conflict (key) do update set
      password_differs = ${isCompared} and (claims.password_differs or claims.password_tag <> excluded.password_tag),
      data_differs = ${isCompared} and (claims.data_differs or claims.data_tag <> excluded.data_tag),
      password_tag = excluded.password_tag,
      data_tag = excluded.data_tag,
      expires_at = greatest(claims.expires_at, excluded.expires_at)
    returning password_differs, data_differs`.execute(trx)
  const [stored] = rows
  if (!stored) throw new Error('claim not stored')
  return stored
}

export async function findPasswordTag(db: Kysely<DB>, key: Buffer, now: Date): Promise<Buffer | undefined> {
  const found = await db
    .selectFrom('address_claims')
    .select('password_tag')
    .where('key', '=', key)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return found?.password_tag
}

/**
 * Gives `left` of a request to pending accounts with the address, of any audience. While an earlier link or code may
 * still prove it, they keep only the common part, because that link may be another requester's. An account with a
 * provider's identity gets nothing: the request may be a stranger's. Proven and vouched addresses are left alone.
 * Without an account a placeholder row is written, so that timing does not reveal one.
 */
export async function narrowClaims(
  trx: Transaction<DB>,
  { address: { channel, value }, now }: Pick<AddressClaim, 'address' | 'now'>,
  left: Claim,
) {
  const db = trx.with('claimed', (qb) =>
    qb
      .updateTable('users')
      .set((column) => ({
        claim: column
          .case()
          .when(hasProvider)
          .then(jsonb({ password_hash: null, data: {} }))
          .when(isProvable(now))
          .then(both(left))
          .else(jsonb(left))
          .end(),
      }))
      .where(channel, '=', value)
      .where('email_confirmed_at', 'is', null)
      .where('phone_confirmed_at', 'is', null)
      .where(`${channel}_vouched`, '=', false)
      .returning('id'),
  )
  await insertDecoy(db, `claim ${channel} ${value}`, now, sql`not exists (select from claimed)`).execute()
}

/** Keeps the values on which the account's claim, or its registration, and the request agree. */
function both({ password_hash, data }: Claim): RawBuilder<unknown> {
  const before = (key: keyof Claim) =>
    sql`coalesce(claim, jsonb_build_object('password_hash', password_hash, 'data', user_metadata - ${FACTS}::text[])) -> ${key}::text`
  return sql`jsonb_build_object(
    'password_hash', case when ${before('password_hash')} = ${JSON.stringify(password_hash)}::jsonb then ${password_hash}::text end,
    'data', case when ${before('data')} = ${JSON.stringify(data)}::jsonb then ${JSON.stringify(data)}::jsonb else '{}' end)`
}

/**
 * Matches accounts with a live token for the address, or one whose lifetime begins at delivery. A message
 * may wait longer than the token that replaced its own.
 */
const isProvable = (now: Date) => sql<boolean>`exists (
  select from ${sql.table('one_time_tokens')}
  where ${sql.ref('one_time_tokens.user_id')} = ${sql.ref('users.id')}
    and purpose in ('confirmation', 'recovery', 'phone_confirmation')
    and (${isStillGood(now)(expressionBuilder<DB, 'one_time_tokens'>())} or exists (
      select from ${sql.table('messages')} message
      where message.user_id = ${sql.ref('users.id')} and message.state in ('queued', 'failed')
        and message.lifetime_seconds > 0)))`

export async function hasProviderIdentity(trx: Transaction<DB>, id: string): Promise<boolean> {
  const found = await trx.selectFrom('users').select('id').where('id', '=', id).where(hasProvider).executeTakeFirst()
  return found !== undefined
}

/** Replaces an account's registration data and ends its claim. */
export async function replaceRegistered(
  trx: Transaction<DB>,
  id: string,
  channel: Address['channel'],
  { identityData, metadata, now }: { identityData: Metadata; metadata: Metadata; now: Date },
): Promise<void> {
  await trx
    .updateTable('identities')
    .set({ identity_data: jsonb(identityData), updated_at: now })
    .where('user_id', '=', id)
    .where('provider', '=', channel)
    .execute()
  await trx
    .updateTable('users')
    .set({ user_metadata: jsonb(metadata), claim: null })
    .where('id', '=', id)
    .execute()
}

/** Marks the account's addresses, unless assumed, as vouched for by an admin, and ends its claim. */
export async function vouchFor(trx: Transaction<DB>, id: string): Promise<void> {
  await trx
    .updateTable('users')
    .set({
      email_vouched: sql<boolean>`email is not null and (email_vouched or not email_assumed)`,
      phone_vouched: sql<boolean>`phone is not null and (phone_vouched or not phone_assumed)`,
      claim: null,
    })
    .where('id', '=', id)
    .execute()
}

export async function setAdminClaim(trx: Transaction<DB>, id: string, claim: Omit<Claim, 'by_admin'>): Promise<void> {
  await trx
    .updateTable('users')
    .set({ claim: jsonb({ ...claim, by_admin: true }), user_metadata: jsonb(claim.data) })
    .where('id', '=', id)
    .execute()
}

export const deleteExpiredClaims = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'address_claims', { column: 'expires_at', before })
