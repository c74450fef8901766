// Registrants of an address, by a sign-up, a setting or a provider; its prover takes it (displace-registrant.ts,
// ../identities/join-or-create-user.ts) unless an admin vouched for it.
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { beginChange, beginChanges, isWatched } from '../../db/watched-users.ts'
import type { Address } from './address.ts'
import { changeUser, noAddress } from './change-user.store.ts'
import { otherChannel } from './proven-addresses.ts'

/** `sessions`: limits that end sessions whose rows are still there. */
export interface ReleaseDeps {
  config: Pick<Config, 'sessions'>
  now: () => Date
}

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
export async function releaseAddress(
  deps: ReleaseDeps,
  db: Kysely<DB>,
  { channel, value }: Address,
  audience: string,
): Promise<void> {
  const whose = sql<boolean>`${sql.ref(channel)} = ${value} and aud = ${audience} and ${isInUse(channel)}`
  if (!isWatched(db)) return void (await withdraw(deps, db, channel, whose))
  await inTransaction(db, async (trx) => {
    const held = await trx.selectFrom('users').select('id').where(withdrawn(channel, whose)).forUpdate().execute()
    const ids = held.map(({ id }) => id)
    await beginChanges(trx, ids)
    // Those alone: an account that comes into use meanwhile would change without an event.
    await withdraw(deps, trx, channel, sql`id = any (${ids}::uuid[])`)
  })
}

const inTransaction = (db: Kysely<DB>, work: (trx: Transaction<DB>) => Promise<void>): Promise<void> =>
  db.isTransaction ? work(db as Transaction<DB>) : db.transaction().execute(work)

/** Withdraws the address of one account, in use or about to be; false where an admin vouched for it. */
export const withdrawEmail = (deps: ReleaseDeps, trx: Transaction<DB>, id: string): Promise<boolean> =>
  withdraw(deps, trx, 'email', sql`id = ${id}`)

/**
 * Moves an unconfirmed address to `email_change` or `phone_change`, because the user still wants it. It replaces a
 * change whose session has ended, also by a limit alone: that one confirms nothing any more, and no answer shows it.
 */
async function withdraw(deps: ReleaseDeps, db: Kysely<DB>, channel: Address['channel'], whose: RawBuilder<unknown>) {
  const now = deps.now()
  const [own, change] = [sql.ref(channel), sql.ref(`${channel}_change`)]
  const [session, sentAt] = [sql.ref(`${channel}_change_session_id`), sql.ref(`${channel}_change_sent_at`)]
  const hasEnded = hasNoSession(deps, `users.${channel}_change_session_id`)
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
        or purpose = ${CHANGE_TOKEN[channel]} and ${hasNoSession(deps, 'one_time_tokens.session_id')})
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

/** Matches a change whose session would not be accepted any more: the rule of ../sessions/session-limits.ts. */
function hasNoSession({ config, now }: ReleaseDeps, id: string) {
  const { timeboxSeconds, inactivitySeconds, singlePerUser } = config.sessions
  const since = (seconds: number) => new Date(now().getTime() - seconds * 1000)
  const isInTime = timeboxSeconds ? sql`and s.created_at > ${since(timeboxSeconds)}` : sql``
  const isInUse = inactivitySeconds ? sql`and s.refreshed_at > ${since(inactivitySeconds)}` : sql``
  const isNewest = singlePerUser
    ? sql`and not exists (select from ${sql.table('sessions')} newer
        where newer.user_id = s.user_id and newer.oauth_client_id is not distinct from s.oauth_client_id
          and (newer.created_at, newer.id) > (s.created_at, s.id))`
    : sql``
  return sql<boolean>`(${sql.ref(id)} is not null and not exists (select from ${sql.table('sessions')} s
    where s.id = ${sql.ref(id)} and (s.not_after is null or s.not_after > ${now()}) ${isInTime} ${isInUse} ${isNewest}))`
}

/** Matches accounts with another way in: a session, another confirmed address, or a provider used before. */
const isInUse = (channel: Address['channel']) => sql`(
  ${sql.ref(`${otherChannel(channel)}_confirmed_at`)} is not null
  or exists (select from ${sql.table('sessions')} s where s.user_id = ${sql.ref('users.id')})
  or (last_sign_in_at is not null and ${hasProvider}))`

/** Matches accounts with an identity at a provider. */
export const hasProvider = sql<boolean>`exists (
  select from ${sql.table('identities')} i
  where i.user_id = ${sql.ref('users.id')} and i.provider not in ('email', 'phone'))`
