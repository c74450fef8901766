// Registrants of an address, by a sign-up, a setting or a provider; its prover takes it (displace-registrant.ts,
// ../identities/join-or-create-user.ts) unless an admin vouched for it.
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { beginChange, isWatched } from '../../db/watched-users.ts'
import type { Address } from './address.ts'
import { changeUser, noAddress } from './change-user.store.ts'
import { otherChannel } from './proven-addresses.ts'

export interface RegisteredAddress {
  address: Address
  audience: string
  /** Account that requests the address. */
  exceptId: string
}

export async function hasRegistrant(db: Kysely<DB>, registered: RegisteredAddress): Promise<boolean> {
  return (await findRegistrantId(db, registered)) !== undefined
}

export async function findRegistrantId(db: Kysely<DB>, registered: RegisteredAddress): Promise<string | undefined> {
  return (await registrantOf(db, registered).select('id').executeTakeFirst())?.id
}

export async function lockRegistrant(trx: Transaction<DB>, registered: RegisteredAddress) {
  const locked = await registrantOf(trx, registered)
    .select(['id', 'email', 'phone', 'email_confirmed_at', 'phone_confirmed_at', 'phone_assumed'])
    .select(['last_sign_in_at', 'banned_until'])
    .forUpdate()
    .executeTakeFirst()
  if (locked) await beginChange(trx, locked.id)
  return locked
}

export type Registrant = NonNullable<Awaited<ReturnType<typeof lockRegistrant>>>

const registrantOf = (db: Kysely<DB>, { address: { channel, value }, audience, exceptId }: RegisteredAddress) =>
  db
    .selectFrom('users')
    .where(channel, '=', value)
    .where('aud', '=', audience)
    .where((eb) => eb.or([eb(`${channel}_confirmed_at`, 'is', null), eb(`${channel}_assumed`, '=', true)]))
    .where(`${channel}_vouched`, '=', false)
    .where('id', '!=', exceptId)

/** Removes an unproven address from an account, with its identity and tokens. */
export async function dropAddress(trx: Transaction<DB>, id: string, { channel, value }: Address, now: Date) {
  await changeUser(trx, id, noAddress(channel), now)
  await trx.deleteFrom('identities').where('user_id', '=', id).where('provider', '=', channel).execute()
  await trx.deleteFrom('one_time_tokens').where('user_id', '=', id).where('relates_to', '=', value).execute()
}

/**
 * Moves an unconfirmed address of a used account to email_change, before a flow looks it up. The flow then creates an
 * account instead of sharing a stranger's. An import leaves such accounts, and an admin who confirms only the number of
 * a pending one. One statement: needs no transaction.
 */
export async function releaseAddress(db: Kysely<DB>, { channel, value }: Address, audience: string, now: Date) {
  const whose = sql<boolean>`${sql.ref(channel)} = ${value} and aud = ${audience} and ${isInUse(channel)}`
  if (!isWatched(db)) return void (await withdraw(db, channel, whose, now))
  await inTransaction(db, async (trx) => {
    const held = await trx.selectFrom('users').select('id').where(withdrawn(channel, whose)).forUpdate().execute()
    for (const { id } of held) await beginChange(trx, id)
    await withdraw(trx, channel, whose, now)
  })
}

const inTransaction = (db: Kysely<DB>, work: (trx: Transaction<DB>) => Promise<void>): Promise<void> =>
  db.isTransaction ? work(db as Transaction<DB>) : db.transaction().execute(work)

/** Withdraws the address of one account, in use or about to be; false where an admin vouched for it. */
export const withdrawEmail = (trx: Transaction<DB>, id: string, now: Date): Promise<boolean> =>
  withdraw(trx, 'email', sql`id = ${id}`, now)

/**
 * Moves an unconfirmed address to `email_change` or `phone_change`, because the user still wants it. It replaces a change
 * whose session was deleted: that one confirms nothing any more, and no answer shows it.
 */
async function withdraw(db: Kysely<DB>, channel: Address['channel'], whose: RawBuilder<unknown>, now: Date) {
  const [own, change] = [sql.ref(channel), sql.ref(`${channel}_change`)]
  const [session, sentAt] = [sql.ref(`${channel}_change_session_id`), sql.ref(`${channel}_change_sent_at`)]
  const hasEnded = hasNoSession(`users.${channel}_change_session_id`)
  const { rows } = await sql`
    with withdrawn as (
      update ${sql.table('users')}
      set ${own} = null, ${change} = case when ${hasEnded} then ${own} else coalesce(${change}, ${own}) end,
        ${session} = case when not ${hasEnded} then ${session} end,
        ${sentAt} = case when not ${hasEnded} then ${sentAt} end, claim = null, updated_at = ${now}
      where ${withdrawn(channel, whose)}
      returning id
    ), no_identity as (
      delete from ${sql.table('identities')} where provider = ${channel} and user_id in (select id from withdrawn)
    ), no_token as (
      delete from ${sql.table('one_time_tokens')}
      where user_id in (select id from withdrawn) and (purpose in (${sql.join(TOKENS_TO[channel])})
        or purpose = ${CHANGE_TOKEN[channel]} and ${hasNoSession('one_time_tokens.session_id')})
    )
    select id from withdrawn`.execute(db)
  return rows.length > 0
}

const withdrawn = (channel: Address['channel'], whose: RawBuilder<unknown>) =>
  sql<boolean>`${sql.ref(channel)} is not null and ${sql.ref(`${channel}_confirmed_at`)} is null
    and not ${sql.ref(`${channel}_vouched`)} and ${whose}`

/** Purposes of links and codes that confirm the address a user has. */
const TOKENS_TO = {
  email: ['confirmation', 'recovery', 'email_change_current'],
  phone: ['phone_confirmation'],
} as const satisfies Record<Address['channel'], readonly TokenPurpose[]>

/** Token of a change, with which housekeeping would cancel the change that replaces it. */
const CHANGE_TOKEN = { email: 'email_change_new', phone: 'phone_change' } as const satisfies Record<
  Address['channel'],
  TokenPurpose
>

const hasNoSession = (id: string) => sql<boolean>`(${sql.ref(id)} is not null
  and not exists (select from ${sql.table('sessions')} s where s.id = ${sql.ref(id)}))`

/** Matches accounts with another way in: a session, another confirmed address, or a provider used before. */
const isInUse = (channel: Address['channel']) => sql`(
  ${sql.ref(`${otherChannel(channel)}_confirmed_at`)} is not null
  or exists (select from ${sql.table('sessions')} s where s.user_id = ${sql.ref('users.id')})
  or (last_sign_in_at is not null and ${hasProvider}))`

/** Matches accounts with an identity at a provider. */
export const hasProvider = sql<boolean>`exists (
  select from ${sql.table('identities')} i
  where i.user_id = ${sql.ref('users.id')} and i.provider not in ('email', 'phone'))`
