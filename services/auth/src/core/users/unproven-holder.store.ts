// Accounts that have an address nobody has proven, by a sign-up, a setting or a provider. Whoever proves it takes it
// (displace-holder.ts, core/identities/external-user.ts). One that an admin gave, by an invitation or with the account, stays.
import { type ExpressionBuilder, type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Address } from './address.ts'
import { noAddress } from './change-user.store.ts'
import { otherChannel } from './proven-addresses.ts'
import { isVouched } from './vouched-address.store.ts'

export interface Holding {
  address: Address
  audience: string
  /** Whose wish the address is. */
  exceptId: string
}

/** Whether another account has the address and has not proven it. */
export async function isHeldUnproven(db: Kysely<DB>, holding: Holding): Promise<boolean> {
  return (await findUnprovenHolderId(db, holding)) !== undefined
}

export async function findUnprovenHolderId(db: Kysely<DB>, holding: Holding): Promise<string | undefined> {
  return (await unprovenHolder(db, holding).select('id').executeTakeFirst())?.id
}

/** The same account, held until the transaction ends. */
export const lockUnprovenHolder = (trx: Transaction<DB>, holding: Holding) =>
  unprovenHolder(trx, holding)
    .select([
      'id',
      'email',
      'phone',
      'email_confirmed_at',
      'phone_confirmed_at',
      'phone_assumed',
      'last_sign_in_at',
      'banned_until',
    ])
    .forUpdate()
    .executeTakeFirst()

export type UnprovenHolder = NonNullable<Awaited<ReturnType<typeof lockUnprovenHolder>>>

const unprovenHolder = (db: Kysely<DB>, { address: { channel, value }, audience, exceptId }: Holding) =>
  db
    .selectFrom('users')
    .where(channel, '=', value)
    .where('aud', '=', audience)
    .where((eb) => eb.or([eb(`${channel}_confirmed_at`, 'is', null), eb(`${channel}_assumed`, '=', true)]))
    .where((eb) => eb.not(isVouched(eb, channel)))
    .where('id', '!=', exceptId)

/** Takes an unproven address from an account, with the identity and the tokens that were about it. */
export async function dropAddress(trx: Transaction<DB>, id: string, { channel, value }: Address, now: Date) {
  await trx
    .updateTable('users')
    .set({ ...noAddress(channel), updated_at: now })
    .where('id', '=', id)
    .execute()
  await trx.deleteFrom('identities').where('user_id', '=', id).where('provider', '=', channel).execute()
  await trx.deleteFrom('one_time_tokens').where('user_id', '=', id).where('relates_to', '=', value).execute()
}

/**
 * Takes an unconfirmed address from an account that is in use without it, before a flow looks the address up. The account keeps
 * all else, and the flow makes a new account instead of sharing a stranger's. Older versions left such accounts. One statement,
 * which stands outside a transaction too.
 */
export async function releaseAddress(
  db: Kysely<DB>,
  { channel, value }: Address,
  audience: string,
  now: Date,
): Promise<void> {
  const isItsUse = (eb: ExpressionBuilder<DB, 'users'>) =>
    eb.and([eb(channel, '=', value), eb('aud', '=', audience), isInUse(eb, channel)])
  await withdraw(db, channel, isItsUse, now)
}

/** Does the same for one account, in use or about to be; false where an admin's word stands for the address. */
export const withdrawEmail = (trx: Transaction<DB>, id: string, now: Date): Promise<boolean> =>
  withdraw(trx, 'email', (eb) => eb('id', '=', id), now)

/** Moves the address to `email_change` or `phone_change`: the user still wants it. */
async function withdraw(
  db: Kysely<DB>,
  channel: Address['channel'],
  whose: (eb: ExpressionBuilder<DB, 'users'>) => ReturnType<typeof isInUse>,
  now: Date,
): Promise<boolean> {
  const change = `${channel}_change` as const
  const withdrawn = await db
    .with('users_of_it', (qb) =>
      qb
        .updateTable('users')
        .set((eb) => ({
          [channel]: null,
          [change]: eb.fn.coalesce(eb.ref(change), eb.ref(channel)),
          claim: null,
          updated_at: now,
        }))
        .where(channel, 'is not', null)
        .where(`${channel}_confirmed_at`, 'is', null)
        .where((eb) => eb.not(isVouched(eb, channel)))
        .where(whose)
        .returning('id'),
    )
    .with('no_identity', (qb) =>
      qb
        .deleteFrom('identities')
        .where('provider', '=', channel)
        .where('user_id', 'in', (eb) => eb.selectFrom('users_of_it').select('id')),
    )
    .with('no_token', (qb) =>
      qb
        .deleteFrom('one_time_tokens')
        .where('purpose', 'in', TOKENS_TO[channel])
        .where('user_id', 'in', (eb) => eb.selectFrom('users_of_it').select('id')),
    )
    .selectFrom('users_of_it')
    .select('id')
    .execute()
  return withdrawn.length > 0
}

/** Links and codes that confirm the address a user has. */
const TOKENS_TO = {
  email: ['confirmation', 'recovery', 'email_change_current'],
  phone: ['phone_confirmation'],
} as const

/** A way in without the address: a session, another confirmed address, or a provider used before. */
const isInUse = (eb: ExpressionBuilder<DB, 'users'>, channel: Address['channel']) =>
  eb.or([
    eb(`${otherChannel(channel)}_confirmed_at`, 'is not', null),
    eb.exists(eb.selectFrom('sessions').whereRef('sessions.user_id', '=', 'users.id').select(sql`1`.as('one'))),
    eb.and([
      eb('last_sign_in_at', 'is not', null),
      eb.exists(
        eb
          .selectFrom('identities')
          .whereRef('identities.user_id', '=', 'users.id')
          .where('identities.provider', 'not in', ['email', 'phone'])
          .select(sql`1`.as('one')),
      ),
    ]),
  ])
