// Rows of trusted devices. Every change holds the user's lock, except for housekeeping. The rules: use-device.ts.
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import {
  type Insertable,
  type Kysely,
  type QueryCreator,
  type RawBuilder,
  type Selectable,
  sql,
  type Transaction,
} from 'kysely'
import type { DB } from '../../db/tables.ts'
import { SECOND_METHODS, TRUSTED_DEVICE } from '../amr/second-methods.ts'

export type TrustedDevice = Selectable<DB['trusted_devices']>

/** Some devices of a user. */
export type Choice = RawBuilder<boolean>

export const EVERY: Choice = sql<boolean>`true`
export const NONE: Choice = sql<boolean>`false`
export const only = (id: string): Choice => sql<boolean>`id = ${id}::uuid`
/** Devices that this session trusted, and the one that it began with. */
export const ofSession = (sessionId: string): Choice =>
  sql<boolean>`(session_id = ${sessionId}::uuid or id = ${deviceOf(sessionId)})`
export const exceptOfSession = (sessionId: string): Choice =>
  sql<boolean>`(session_id <> ${sessionId}::uuid and id is distinct from ${deviceOf(sessionId)})`

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
  const ended = await endingDevices(trx, userId, choice).execute()
  return ended.map(({ id }) => id)
}

/** The same as a part of another statement: `trx.with('ended_devices', (db) => endingDevices(db, userId))`. */
export const endingDevices = (db: QueryCreator<DB>, userId: string, choice = EVERY) =>
  db.deleteFrom('trusted_devices').where('user_id', '=', userId).where(choice).returning('id')

/** Ends devices, and takes the second factor from the sessions that they began and that have proven none since. */
export async function withdrawDevices(trx: Transaction<DB>, userId: string, choice = EVERY): Promise<string[]> {
  const ended = await trx
    .with('ended_devices', (db) => endingDevices(db, userId, choice))
    .with('lowered', (db) => loweringBegun(db, userId))
    .selectFrom('ended_devices')
    .select('id')
    .execute()
  return ended.map(({ id }) => id)
}

const PROOFS = Object.values(SECOND_METHODS)

/** Takes the second factor from sessions that `ended_devices` of the same statement began. */
export const loweringBegun = (db: QueryCreator<DB>, userId: string) =>
  db
    .updateTable('sessions')
    .set({
      ...{ aal: 'aal1', factor_id: null, trusted_device_id: null },
      amr: sql`(
        select coalesce(jsonb_agg(entry) filter (where entry ->> 'method' <> ${TRUSTED_DEVICE}), '[]')
        from jsonb_array_elements(${sql.ref('amr')}) entry)`,
    })
    .where('user_id', '=', userId)
    .where(sql<boolean>`trusted_device_id in (select id from ended_devices)`)
    .where(sql<boolean>`not exists (
      select from jsonb_array_elements(amr) entry where entry ->> 'method' = any (${PROOFS}::text[]))`)

/** Ends the devices beyond the limit that were not used for the longest time. Returns their number. */
export async function endLeastUsed(trx: Transaction<DB>, userId: string, limit: number): Promise<number> {
  const beyond = sql<boolean>`id in (
    select id from ${sql.table('trusted_devices')} where user_id = ${userId}::uuid
    order by coalesce(last_used_at, created_at) desc, created_at desc, id desc offset ${limit})`
  return (await endDevices(trx, userId, beyond)).length
}

export const deleteExpiredDevices = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'trusted_devices', { column: 'expires_at', before })
