// What requests ask for an address that nobody has proven: a password and metadata. The one rule: any of them may be a
// stranger's, so the proof of the address brings what all of them agree about and nothing else. Applied by ../verify/.
import { createHash } from 'node:crypto'
import { deleteBatch, jsonb } from '@services/common/database'
import { type ExpressionBuilder, type Kysely, sql, type Transaction } from 'kysely'
import type { Config } from '../config.ts'
import { nobodysKey } from '../db/nobody.store.ts'
import type { Claim, DB, Metadata } from '../db/tables.ts'
import type { Address } from './address.ts'
import { registeredData } from './new-account.ts'
import { type LockedUser, setPassword } from './users.store.ts'

export interface AddressClaim {
  address: Address
  audience: string
  /** null: a request without a password, for a link or code. */
  passwordHash: string | null
  data: Metadata
  now: Date
  /** Life of a link or code: later nothing sent for this request can prove the address. */
  lifetimeSeconds: number
}

/** The claim of a request that arrives now. */
export const claimOf = (
  { config, now }: { config: Pick<Config, 'mail' | 'sms'>; now: () => Date },
  { address, audience, passwordHash, data }: Omit<AddressClaim, 'now' | 'lifetimeSeconds'>,
): AddressClaim => ({
  address,
  audience,
  passwordHash,
  data,
  now: now(),
  lifetimeSeconds: (address.channel === 'email' ? config.mail : config.sms).codeLifetimeSeconds,
})

/**
 * Notes what a request asks for, alike for known and unknown addresses, and answers what is left of it beside all other
 * requests of the last `lifetimeSeconds`. An account that waits for the proof of the address gets that with the proof. The
 * row stays locked until the transaction ends: requests at the same time for one address come one after the other.
 */
export async function noteClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<Claim> {
  const noted = await putAddressClaim(trx, claim, sql`claims.expires_at > ${claim.now}`)
  const left: Claim = {
    password_hash: noted.password_differs ? null : claim.passwordHash,
    data: noted.data_differs ? {} : claim.data,
  }
  await claimAccount(trx, claim, left)
  return left
}

/** The same at an admin's word, beside which no request before counts. */
export async function noteAdminClaim(trx: Transaction<DB>, claim: AddressClaim): Promise<void> {
  await putAddressClaim(trx, claim, sql`false`)
}

/** Lets the claims to an address count as long as what is sent to it anew: its link may be the first of them that is followed. */
export async function extendClaim(
  db: Kysely<DB>,
  { address, audience }: Pick<AddressClaim, 'address' | 'audience'>,
  now: Date,
  lifetimeSeconds: number,
) {
  await db
    .updateTable('address_claims')
    .set((eb) => ({
      expires_at: eb.fn('greatest', ['expires_at', eb.val(new Date(now.getTime() + lifetimeSeconds * 1000))]),
    }))
    .where('key', '=', keyOf(address, audience))
    .where('expires_at', '>', now)
    .execute()
}

const keyOf = ({ channel, value }: Address, audience: string) =>
  createHash('sha256').update(`${audience}\0${channel}\0${value}`).digest()

async function putAddressClaim(trx: Transaction<DB>, claim: AddressClaim, counts: ReturnType<typeof sql>) {
  const { address, audience, passwordHash, data, now, lifetimeSeconds } = claim
  const key = keyOf(address, audience)
  const passwordTag = createHash('sha256')
    .update(passwordHash ?? '')
    .digest()
  const expiresAt = new Date(now.getTime() + lifetimeSeconds * 1000)
  const { rows } = await sql<{ password_differs: boolean; data_differs: boolean }>`
    insert into ${sql.table('address_claims')} as claims (key, password_tag, data_tag, expires_at)
    values (${key}, ${passwordTag}, sha256(convert_to(${JSON.stringify(data)}::jsonb::text, 'UTF8')), ${expiresAt})
    on conflict (key) do update set
      password_differs = ${counts} and (claims.password_differs or claims.password_tag <> excluded.password_tag),
      data_differs = ${counts} and (claims.data_differs or claims.data_tag <> excluded.data_tag),
      password_tag = excluded.password_tag,
      data_tag = excluded.data_tag,
      expires_at = greatest(claims.expires_at, excluded.expires_at)
    returning password_differs, data_differs`.execute(trx)
  const [noted] = rows
  if (!noted) throw new Error('a claim was not noted')
  return noted
}

/**
 * An account with a proven address keeps what it has, and so does one that an admin made or invited. Of one that a provider
 * told the address nobody knows whether the request is its owner's. Without an account to write to, a row stands for it: time
 * must not tell that one waits.
 */
async function claimAccount(
  trx: Transaction<DB>,
  { address: { channel, value }, audience, now }: AddressClaim,
  left: Claim,
) {
  const key = nobodysKey(`claim ${audience} ${channel} ${value}`)
  await trx
    .with('claimed', (qb) =>
      qb
        .updateTable('users')
        .set((column) => ({
          claim: column
            .case()
            .when(isOfProvider(column))
            .then(jsonb({ password_hash: null, data: {} }))
            .else(jsonb(left))
            .end(),
        }))
        .where(channel, '=', value)
        .where('aud', '=', audience)
        .where('email_confirmed_at', 'is', null)
        .where('phone_confirmed_at', 'is', null)
        .where('invited_at', 'is', null)
        .where('made_by_admin', '=', false)
        .returning('id'),
    )
    .insertInto('send_gaps')
    .columns(['key', 'sent_at', 'expires_at'])
    .expression(
      trx
        .selectNoFrom([
          sql<Buffer>`${key}::bytea`.as('key'),
          sql<Date>`${now}::timestamptz`.as('sent_at'),
          sql<Date>`${now}::timestamptz`.as('expires_at'),
        ])
        .where(sql<boolean>`not exists (select from claimed)`),
    )
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ sent_at: now, expires_at: now }))
    .execute()
}

const isOfProvider = ({ exists, selectFrom }: ExpressionBuilder<DB, 'users'>) =>
  exists(
    selectFrom('identities')
      .select('identities.id')
      .whereRef('identities.user_id', '=', 'users.id')
      .where('identities.provider', 'not in', ['email', 'phone']),
  )

/** Whether the account has a way in by a provider. */
export async function hasProviderIdentity(trx: Transaction<DB>, id: string): Promise<boolean> {
  const found = await trx.selectFrom('users').select('id').where('id', '=', id).where(isOfProvider).executeTakeFirst()
  return found !== undefined
}

/** What the account was registered with gives way to the claim; messages sent before say nothing about the new password. */
export async function applyClaim(
  trx: Transaction<DB>,
  { id, ...addresses }: Pick<LockedUser, 'id' | 'email' | 'phone'>,
  { password_hash, data, by_admin }: Claim,
  now: Date,
): Promise<void> {
  await setPassword(trx, id, password_hash, now)
  const channel = addresses.email ? 'email' : 'phone'
  const registered = registeredData(id, { channel, value: addresses[channel] ?? '' }, by_admin ? {} : data)
  await trx
    .updateTable('identities')
    .set({ identity_data: jsonb(registered), updated_at: now })
    .where('user_id', '=', id)
    .where('provider', '=', channel)
    .execute()
  await trx
    .updateTable('users')
    .set({ user_metadata: jsonb(by_admin ? data : registered), claim: null })
    .where('id', '=', id)
    .execute()
}

/** Makes the account an admin's word, which no claim changes. */
export async function vouchFor(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.updateTable('users').set({ made_by_admin: true, claim: null }).where('id', '=', id).execute()
}

/** Notes an admin's claim with the account. */
export async function setAdminClaim(trx: Transaction<DB>, id: string, claim: Omit<Claim, 'by_admin'>): Promise<void> {
  await trx
    .updateTable('users')
    .set({ claim: jsonb({ ...claim, by_admin: true }), user_metadata: jsonb(claim.data) })
    .where('id', '=', id)
    .execute()
}

/** Housekeeping. */
export function deleteExpiredClaims(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'address_claims', sql`expires_at < ${before}`, limit)
}
