import { isUniqueViolation } from '@services/common/database/errors'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Address } from './address.ts'
import { changeUser, noRequest, type UserChanges } from './change-user.store.ts'

/** Finds users by address, proven or not; not by linked identities: others may own those now (docs/addresses.md). */
export async function findUserIdsByEmails(db: Kysely<DB>, emails: readonly string[], aud: string): Promise<string[]> {
  const found = await db.selectFrom('users').select('id').where('email', 'in', emails).where('aud', '=', aud).execute()
  return found.map(({ id }) => id)
}

export async function isEmailTaken(db: Kysely<DB>, email: string, aud: string, exceptId?: string): Promise<boolean> {
  return (await findUserIdsByEmails(db, [email], aud)).some((id) => id !== exceptId)
}

/** Throws email_exists when another account than `exceptId` has the address. */
export async function refuseTakenEmail(db: Kysely<DB>, email: string, aud: string, exceptId?: string): Promise<void> {
  if (await isEmailTaken(db, email, aud, exceptId)) throw apiError('email_exists')
}

/** Throws phone_exists when another account than `exceptId` has the number. */
export async function refuseTakenPhone(db: Kysely<DB>, phone: string, aud: string, exceptId?: string): Promise<void> {
  const found = await db.selectFrom('users').select('id').where('phone', '=', phone).where('aud', '=', aud).execute()
  if (found.some(({ id }) => id !== exceptId)) throw apiError('phone_exists')
}

/** Translates the failure of a write that lost a race for an address. */
export function refuseTakenAddress(error: unknown): never {
  if (isUniqueViolation(error, 'users_email_key')) throw apiError('email_exists', { cause: error })
  if (isUniqueViolation(error, 'users_phone_key')) throw apiError('phone_exists', { cause: error })
  throw error
}

/** Stores the address a user wants; its confirmation makes it theirs. */
export function requestEmailChange(
  trx: Transaction<DB>,
  id: string,
  { email, sessionId }: { email: string; sessionId: string | null },
  now: Date,
): Promise<void> {
  const sent = { email_change_sent_at: now, email_change_session_id: sessionId, email_change_confirm_status: 0 }
  return changeUser(trx, id, { email_change: email, ...sent }, now)
}

export function requestPhoneChange(
  trx: Transaction<DB>,
  id: string,
  { phone, sessionId }: { phone: string; sessionId: string | null },
  now: Date,
): Promise<void> {
  const sent = { phone_change_sent_at: now, phone_change_session_id: sessionId }
  return changeUser(trx, id, { phone_change: phone, ...sent }, now)
}

/** Records the first of two confirmations of a change; false if there was one already. */
export async function recordFirstConfirmation(trx: Transaction<DB>, id: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('users')
    .set({ email_change_confirm_status: 1, updated_at: now })
    .where('id', '=', id)
    .where('email_change_confirm_status', '=', 0)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Proven by its owner, or assumed because of a setting. */
export type Confirmation = 'proven' | 'assumed'

/** Gives the user the wanted address. Throws email_exists when another account has it by now. */
export async function applyEmailChange(
  trx: Transaction<DB>,
  id: string,
  email: string,
  confirmation: Confirmation,
  now: Date,
): Promise<void> {
  const changes: UserChanges = {
    email,
    email_change: null,
    email_change_session_id: null,
    email_change_confirm_status: 0,
    email_assumed: confirmation === 'assumed',
    email_vouched: false,
    email_confirmed_at: sql<Date>`coalesce(email_confirmed_at, ${now})`,
    user_metadata: sql`user_metadata || '{"email_verified": true}'::jsonb`,
    is_anonymous: false,
  }
  await changeUser(trx, id, changes, now).catch(refuseTakenAddress)
}

/**
 * Gives the user the wanted number. An address that only a provider reported is removed: its owner could prove it and
 * share the account. Throws phone_exists when another account has the number by now.
 */
export async function applyPhoneChange(
  trx: Transaction<DB>,
  id: string,
  phone: string,
  confirmation: Confirmation,
  now: Date,
): Promise<void> {
  const changes: UserChanges = {
    email: sql<string | null>`case when email_confirmed_at is not null or exists (
      select from ${sql.table('identities')} i where i.user_id = ${sql.ref('users.id')} and i.provider = 'email'
    ) then ${sql.ref('users.email')} end`,
    phone,
    phone_change: null,
    phone_change_session_id: null,
    // The time of the first proof stays: older tokens of the same owner remain valid.
    phone_confirmed_at: sql<Date>`case when phone_assumed then ${now} else coalesce(phone_confirmed_at, ${now}) end`,
    phone_assumed: confirmation === 'assumed',
    phone_vouched: false,
    user_metadata: sql`user_metadata || '{"phone_verified": true}'::jsonb`,
    is_anonymous: false,
  }
  await changeUser(trx, id, changes, now).catch(refuseTakenAddress)
}

export async function cancelAddressChanges(trx: Transaction<DB>, id: string, now: Date): Promise<void> {
  await trx
    .updateTable('users')
    .set({ ...noRequest('email'), ...noRequest('phone'), updated_at: now })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('email_change', 'is not', null), eb('phone_change', 'is not', null)]))
    .execute()
}

/** Cancels changes whose last link or code expired before. Run it before these tokens are deleted. */
export async function cancelExpiredChanges(db: Kysely<DB>, before: Date, now: Date, limit: number): Promise<number> {
  const purposes = sql`('email_change_new', 'email_change_current', 'phone_change')`
  const { numAffectedRows } = await sql`
    update ${sql.table('users')} set email_change = null, email_change_sent_at = null, email_change_session_id = null,
      email_change_confirm_status = 0,
      phone_change = null, phone_change_sent_at = null, phone_change_session_id = null, updated_at = ${now}
    where id = any (array(
      select u.id from ${sql.table('users')} u
      where (u.email_change is not null or u.phone_change is not null) and u.deleted_at is null
        and u.id in (
          select user_id from ${sql.table('one_time_tokens')} where expires_at < ${before} and purpose in ${purposes})
        and not exists (
          select from ${sql.table('one_time_tokens')} t
          where t.user_id = u.id and t.purpose in ${purposes} and t.expires_at >= ${before})
      limit ${limit} for update of u skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0)
}

/**
 * Marks the address as proven; a second call keeps the first time. An assumed address gets the next second, later than
 * every token of the registrant (their `iat` is in whole seconds).
 */
export async function confirmAddress(
  trx: Transaction<DB>,
  id: string,
  channel: Address['channel'],
  now: Date,
): Promise<void> {
  const [assumed, confirmedAt] = [sql.ref(`${channel}_assumed`), sql.ref(`${channel}_confirmed_at`)]
  const nextSecond = new Date((Math.floor(now.getTime() / 1000) + 1) * 1000)
  const verified = JSON.stringify({ [`${channel}_verified`]: true })
  const changes: UserChanges = {
    [`${channel}_confirmed_at`]: sql`case when ${assumed} then ${nextSecond} else coalesce(${confirmedAt}, ${now}) end`,
    [`${channel}_assumed`]: false,
    claim: null,
    user_metadata: sql`user_metadata || ${verified}::jsonb`,
    is_anonymous: false,
  }
  await changeUser(trx, id, changes, now)
}
