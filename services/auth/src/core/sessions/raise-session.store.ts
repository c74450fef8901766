import { type RawBuilder, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../db/ended-sessions.store.ts'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import { TRUSTED_DEVICE } from '../amr/second-methods.ts'
import { type Choice, endingDevices } from '../trusted-devices/trusted-devices.store.ts'
import type { SessionLimits } from './session-limits.ts'

export interface Raise {
  sessionId: string
  userId: string
  method: string
  /** null: a recovery code. */
  factorId: string | null
  /** True: an application may share the refresh token, which stays. */
  keepsToken: boolean
  now: Date
}

/** Raises a session to aal2; undefined when it has ended. Advances by two: a token one behind is still exchangeable. */
export function raiseSession(trx: Transaction<DB>, { sessionId, userId, method, factorId, keepsToken, now }: Raise) {
  const entry: AmrEntry = { method, timestamp: Math.floor(now.getTime() / 1000) }
  return trx
    .updateTable('sessions')
    .set((eb) => ({
      aal: 'aal2' as const,
      factor_id: factorId,
      // Prepended: of two methods of one second the newer comes first in the token.
      amr: sql`${JSON.stringify([entry])}::jsonb || ${amrWithout(sql`entry ->> 'method' = ${method}`)}`,
      ...(!keepsToken && { refresh_counter: eb('refresh_counter', '+', 2), refreshed_at: now }),
    }))
    .where('id', '=', sessionId)
    .where('user_id', '=', userId)
    .returning(['id', 'aal', 'amr', 'refresh_counter'])
    .executeTakeFirst()
}

/** Methods that renew no session: they prove an address that was new to the user, or nothing. */
const RENEWING_NONE: readonly string[] = ['email_change', 'phone_change', TRUSTED_DEVICE]

/**
 * Gives a session the proofs of a newer one of the user, with their times, and ends the newer one. Undefined when that
 * has a higher level, or when sessions between them have replaced the first. The refresh token stays: an application
 * may share it.
 */
export async function renewSession(
  trx: Transaction<DB>,
  { userId, sessionId, newerId }: { userId: string; sessionId: string; newerId: string },
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
): Promise<{ aal: Aal } | undefined> {
  const sessions = sql.table('sessions')
  const proofs = sql`(select coalesce(jsonb_agg(proof), '[]') from jsonb_array_elements(newer.amr) proof
    where proof ->> 'method' <> all (${RENEWING_NONE}::text[]))`
  const isReplaced = sql`exists (select from ${sessions} between where between.user_id = ${userId}::uuid
    and between.oauth_client_id is not distinct from renewed.oauth_client_id
    and (between.created_at, between.id) > (renewed.created_at, renewed.id)
    and (between.created_at, between.id) < (newer.created_at, newer.id))`
  const { rows } = await sql<{ aal: Aal }>`
    update ${sessions} renewed set amr = ${proofs} || (
      select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(renewed.amr) entry
      where not exists (select from jsonb_array_elements(${proofs}) proof where proof -> 'method' = entry -> 'method'))
    from ${sessions} newer
    where renewed.id = ${sessionId}::uuid and newer.id = ${newerId}::uuid
      and renewed.user_id = ${userId}::uuid and newer.user_id = ${userId}::uuid
      and newer.aal <= renewed.aal ${singlePerUser ? sql`and not ${isReplaced}` : sql``}
    returning renewed.aal`.execute(trx)
  if (rows[0]) await deleteSessions(trx, sql`id = ${newerId}::uuid`)
  return rows[0]
}

/** Ends the user's other aal1 sessions, which have proven less, and these trusted devices. */
export async function endLowerSessions(
  trx: Transaction<DB>,
  userId: string,
  exceptId: string,
  devices: Choice,
): Promise<void> {
  await noteChange(trx, { userId, sessionsEnd: 'second_factor_proven' })
  await deleteSessions(trx, sql`user_id = ${userId} and id <> ${exceptId} and aal = 'aal1'`, {
    ended_devices: endingDevices(trx, userId, devices),
  })
}

/**
 * Returns sessions that were raised with this factor to the level at which they began; without one, all of the user's.
 * The trusted devices end.
 */
export async function lowerSessions(
  trx: Transaction<DB>,
  userId: string,
  methods: readonly string[],
  factorId?: string,
): Promise<void> {
  let query = trx
    .with('ended_devices', (db) => endingDevices(db, userId))
    .updateTable('sessions')
    .set((eb) => ({
      aal: eb.ref('initial_aal'),
      factor_id: null,
      trusted_device_id: null,
      amr: amrWithout(sql`entry ->> 'method' = any (${methods}::text[])`),
    }))
    .where('user_id', '=', userId)
    .where('aal', '!=', 'aal1')
  if (factorId) query = query.where('factor_id', '=', factorId)
  await query.execute()
}

const amrWithout = (condition: RawBuilder<unknown>) => sql`(
  select coalesce(jsonb_agg(entry) filter (where not (${condition})), '[]')
  from jsonb_array_elements(${sql.ref('amr')}) entry)`
