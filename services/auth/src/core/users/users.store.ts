import { jsonb } from '@services/common/database/pool'
import { prepared } from '@services/common/database/prepared-statement'
import type { ExpressionBuilder, Insertable, Kysely, Selectable, Transaction } from 'kysely'
import { jsonArrayFrom, jsonBuildObject } from 'kysely/helpers/postgres'
import type { DB, UsersTable } from '../../db/tables.ts'
import { beginChange, beginCreation } from '../../db/watched-users.ts'
import type { Address } from './address.ts'
import { changeUser } from './change-user.store.ts'

/** Columns of answers; the password hash is selected only for a comparison. */
export const USER_COLUMNS = [
  'id',
  'aud',
  'role',
  'email',
  'phone',
  'email_confirmed_at',
  'phone_confirmed_at',
  'email_assumed',
  'phone_assumed',
  'confirmed_at',
  'invited_at',
  'confirmation_sent_at',
  'recovery_sent_at',
  'email_change',
  'email_change_sent_at',
  'email_change_session_id',
  'phone_change',
  'phone_change_sent_at',
  'phone_change_session_id',
  'reauthentication_sent_at',
  'last_sign_in_at',
  'app_metadata',
  'user_metadata',
  'is_anonymous',
  'banned_until',
  'deleted_at',
  'created_at',
  'updated_at',
  'factors',
] as const

/** A row as PostgreSQL's JSON has it: times are text. */
type Json<Row> = { [Column in keyof Row]: Date extends Row[Column] ? string | Extract<Row[Column], null> : Row[Column] }

export type IdentityJson = Json<Selectable<DB['identities']>>

export const IDENTITY_COLUMNS = [
  ...(['id', 'provider_id', 'user_id', 'identity_data', 'provider', 'last_sign_in_at'] as const),
  ...(['created_at', 'updated_at', 'email'] as const),
]

export type User = Pick<Selectable<UsersTable>, (typeof USER_COLUMNS)[number]> & {
  identities: IdentityJson[]
  /** Absent in a user that was not read from the database. */
  has_password?: boolean
}
/** A user found by an address, which is assumed if only a setting confirmed it. */
export type FoundUser = User & { password_hash: string | null; isAssumed: boolean; isVouched: boolean }

/** Selects user and identities, oldest first, as JSON: cheaper than pg's column decoding (12 % of GET /user's CPU). */
export function userJson(eb: ExpressionBuilder<DB, 'users'>) {
  const identities = jsonArrayFrom(
    eb
      .selectFrom('identities')
      .select(IDENTITY_COLUMNS)
      .whereRef('identities.user_id', '=', 'users.id')
      .orderBy('identities.created_at')
      .orderBy('identities.provider'),
  )
  const columns = Object.fromEntries(USER_COLUMNS.map((column) => [column, eb.ref(`users.${column}`)]))
  const hasPassword = eb('users.password_hash', 'is not', null)
  return jsonBuildObject({ ...columns, has_password: hasPassword, identities })
    .$castTo<UserJson>()
    .as('user')
}

export type UserJson = Json<User>

export const toUser = (json: UserJson): User => ({
  ...json,
  email_confirmed_at: time(json.email_confirmed_at),
  phone_confirmed_at: time(json.phone_confirmed_at),
  confirmed_at: time(json.confirmed_at),
  invited_at: time(json.invited_at),
  confirmation_sent_at: time(json.confirmation_sent_at),
  recovery_sent_at: time(json.recovery_sent_at),
  email_change_sent_at: time(json.email_change_sent_at),
  phone_change_sent_at: time(json.phone_change_sent_at),
  reauthentication_sent_at: time(json.reauthentication_sent_at),
  last_sign_in_at: time(json.last_sign_in_at),
  banned_until: time(json.banned_until),
  deleted_at: time(json.deleted_at),
  created_at: new Date(json.created_at),
  updated_at: new Date(json.updated_at),
})

const time = (text: string | null) => (text === null ? null : new Date(text))

export async function findUserById(db: Kysely<DB>, id: string): Promise<User | undefined> {
  const found = await db.selectFrom('users').select(userJson).where('users.id', '=', id).executeTakeFirst()
  return found && toUser(found.user)
}

export async function findUserByAddress(
  db: Kysely<DB>,
  { channel, value }: Address,
  aud: string,
): Promise<FoundUser | undefined> {
  const [found] = await selectBy[channel](db, { value, aud })
  return (
    found && {
      ...toUser(found.user),
      password_hash: found.password_hash,
      isAssumed: found.isAssumed,
      isVouched: found.isVouched,
    }
  )
}

const userBy = (channel: Address['channel']) =>
  prepared((db: Kysely<DB>, { value, aud }: { value: string; aud: string }) =>
    db
      .selectFrom('users')
      .select([
        'users.password_hash',
        `users.${channel}_assumed as isAssumed`,
        `users.${channel}_vouched as isVouched`,
        userJson,
      ])
      .where(`users.${channel}`, '=', value)
      .where('users.aud', '=', aud),
  )
const selectBy = { email: userBy('email'), phone: userBy('phone') }

export const findUserByEmail = (db: Kysely<DB>, value: string, aud: string): Promise<FoundUser | undefined> =>
  findUserByAddress(db, { channel: 'email', value }, aud)

/** Ids of the users of all audiences who have this e-mail address or number. */
export async function listIdsByAddress(db: Kysely<DB>, { email, phone }: { email: string; phone: string }) {
  const users = db.selectFrom('users').select('id')
  const found = await users.where((eb) => eb.or([eb('email', '=', email), eb('phone', '=', phone)])).execute()
  return found.map(({ id }) => id)
}

export async function findPasswordHash(db: Kysely<DB>, id: string): Promise<string | null | undefined> {
  const found = await db.selectFrom('users').select('password_hash').where('id', '=', id).executeTakeFirst()
  return found?.password_hash
}

/** Locks the row until the transaction ends. Every flow locks the user before its sessions and tokens. */
export async function lockUser(trx: Transaction<DB>, id: string) {
  const locked = await trx
    .selectFrom('users')
    .select(['id', 'password_hash', 'claim', 'invited_at', 'banned_until'])
    .select(['email', 'email_confirmed_at', 'email_assumed', 'email_vouched'])
    .select(['email_change', 'email_change_confirm_status'])
    .select(['phone', 'phone_confirmed_at', 'phone_assumed', 'phone_vouched', 'phone_change'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  await beginChange(trx, id)
  return locked
}

/** Locks the row for a transaction that does not change it. False if it is locked already: nothing is waited for. */
export async function lockIdleUser(trx: Transaction<DB>, id: string): Promise<boolean> {
  const query = trx.selectFrom('users').select('id').where('id', '=', id).forNoKeyUpdate().skipLocked()
  return (await query.executeTakeFirst()) !== undefined
}

export type LockedUser = NonNullable<Awaited<ReturnType<typeof lockUser>>>

export type LockedAccount = User & LockedUser

/**
 * Locks the row and then reads the user, so that the result contains what a concurrent flow has just written. Reads
 * without a row too, so that the time does not reveal one.
 */
export async function lockAndReadUser(trx: Transaction<DB>, id: string): Promise<LockedAccount | undefined> {
  const locked = await lockUser(trx, id)
  const user = await findUserById(trx, id)
  return locked && user && { ...locked, ...user }
}

/** Inserts the user without identities; false if the address is taken in this audience. */
export async function insertUser(trx: Transaction<DB>, newUser: User & Insertable<UsersTable>): Promise<boolean> {
  const { identities: _separate, confirmed_at: _generated, ...user } = newUser
  await beginCreation(trx, [user.id])
  const inserted = await trx
    .insertInto('users')
    .values({ ...user, app_metadata: jsonb(user.app_metadata), user_metadata: jsonb(user.user_metadata) })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

type SentColumn = `${'confirmation' | 'recovery' | 'email_change' | 'phone_change' | 'reauthentication'}_sent_at`

/** Notes when the last message of a kind was requested. */
export const setSentAt = (trx: Transaction<DB>, id: string, column: SentColumn, now: Date): Promise<void> =>
  changeUser(trx, id, { [column]: now }, now)

export const setInvited = (trx: Transaction<DB>, id: string, now: Date): Promise<void> =>
  changeUser(trx, id, { invited_at: now, email_vouched: true, confirmation_sent_at: now }, now)

export const NEVER_SENT = {
  confirmation_sent_at: null,
  recovery_sent_at: null,
  email_change_sent_at: null,
  phone_change_sent_at: null,
  reauthentication_sent_at: null,
} satisfies Record<SentColumn, null>

/** Sets a password, or none, and clears the send times, for a new code at once. The caller ends sessions and tokens. */
export const setPassword = (trx: Transaction<DB>, id: string, hash: string | null, now: Date): Promise<void> =>
  changeUser(trx, id, { password_hash: hash, ...NEVER_SENT }, now)

/** Stores a stronger hash of the same password, unless it changed meanwhile. */
export async function replaceHash(db: Kysely<DB>, id: string, oldHash: string, newHash: string): Promise<void> {
  await db
    .updateTable('users')
    .set({ password_hash: newHash })
    .where('id', '=', id)
    .where('password_hash', '=', oldHash)
    .execute()
}

export const touchUser = (trx: Transaction<DB>, id: string, now: Date): Promise<void> => changeUser(trx, id, {}, now)
