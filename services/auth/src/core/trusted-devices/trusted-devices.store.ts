// Rows of trusted devices. Every change holds the user's lock, except for housekeeping. The rules: use-device.ts.
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, type RawBuilder, type Selectable, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Method in the `amr` of sessions whose second factor a device replaced. */
export const TRUSTED_DEVICE = 'trusted_device'

export type TrustedDevice = Selectable<DB['trusted_devices']>

/** Some devices of a user. */
type Choice = RawBuilder<boolean>

export const EVERY: Choice = sql<boolean>`true`
export const only = (id: string): Choice => sql<boolean>`id = ${id}::uuid`
/** Devices that this session trusted, and the one that it began with. */
export const ofSession = (sessionId: string): Choice =>
  sql<boolean>`(session_id = ${sessionId}::uuid or id = ${deviceOf(sessionId)})`
export const exceptOfSession = (sessionId: string): Choice => sql<boolean>`id is distinct from ${deviceOf(sessionId)}`

const deviceOf = (sessionId: string) =>
  sql`(select trusted_device_id from ${sql.table('sessions')} where id = ${sessionId}::uuid)`

export async function insertDevice(trx: Transaction<DB>, device: Insertable<DB['trusted_devices']>): Promise<void> {
  await trx.insertInto('trusted_devices').values(device).execute()
}

export function findDevice(trx: Transaction<DB>, userId: string, id: string): Promise<TrustedDevice | undefined> {
  return trx
    .selectFrom('trusted_devices')
    .selectAll()
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst()
}

export function listDevices(db: Kysely<DB>, userId: string): Promise<TrustedDevice[]> {
  return db
    .selectFrom('trusted_devices')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

export interface Use {
  tokenHash: Buffer
  userAgent: string | null
  ip: string | null
  now: Date
}

export async function rotateToken(trx: Transaction<DB>, id: string, { tokenHash, userAgent, ip, now }: Use) {
  await trx
    .updateTable('trusted_devices')
    .set((eb) => ({
      token_hash: tokenHash,
      uses: eb('uses', '+', 1),
      user_agent: userAgent,
      ip,
      last_used_at: now,
    }))
    .where('id', '=', id)
    .execute()
}

/** Ends devices of a user and returns their ids. Sessions that they began keep the second factor. */
export async function endDevices(trx: Transaction<DB>, userId: string, choice = EVERY): Promise<string[]> {
  const ended = await trx
    .deleteFrom('trusted_devices')
    .where('user_id', '=', userId)
    .where(choice)
    .returning('id')
    .execute()
  return ended.map(({ id }) => id)
}

/** Ends devices, and takes the second factor from the sessions that they began and that have proven none since. */
export async function withdrawDevices(trx: Transaction<DB>, userId: string, choice = EVERY): Promise<string[]> {
  const ids = await endDevices(trx, userId, choice)
  if (ids.length === 0) return ids
  const amr = sql`(
    select coalesce(jsonb_agg(entry) filter (where entry ->> 'method' <> ${TRUSTED_DEVICE}), '[]')
    from jsonb_array_elements(${sql.ref('amr')}) entry)`
  await trx
    .updateTable('sessions')
    .set({ aal: 'aal1', factor_id: null, trusted_device_id: null, amr })
    .where('user_id', '=', userId)
    .where('trusted_device_id', 'in', ids)
    .execute()
  return ids
}

/** Ends the devices beyond the limit that were not used for the longest time. Returns their number. */
export async function endLeastUsed(trx: Transaction<DB>, userId: string, limit: number): Promise<number> {
  const beyond = sql<boolean>`id in (
    select id from ${sql.table('trusted_devices')} where user_id = ${userId}::uuid
    order by coalesce(last_used_at, created_at) desc, created_at desc, id desc offset ${limit})`
  return (await endDevices(trx, userId, beyond)).length
}

export const deleteExpiredDevices = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'trusted_devices', { column: 'expires_at', before })
